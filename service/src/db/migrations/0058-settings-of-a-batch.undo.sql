-- Nothing is lost at once: fingerprints and brands are in the settings again. The next start of a version without them removes them.
update tag_batch set settings = case when kept_settings ? 'keys'
    then kept_settings || coalesce(jsonb_set('{}', '{brands}', settings -> 'brands'), '{}')
    else coalesce(jsonb_set('{}', '{brands}', kept_settings -> 'brands'), '{}') || settings end
  where not settings ? 'keys' and kept_settings is not null;
alter table tag_batch drop column kept_settings;
