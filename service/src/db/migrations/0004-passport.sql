-- Passports (spec §2.8, §4.5, §4.6): which token is which item, and the places of signed passports in their status lists.

-- The one place where a token's GTIN and serial stand. The check digit makes the weighted sum of all 14 digits end in 0;
-- the serial is CSET 82 but for . and .. , which no URL can name.
create table item (
  token_id numeric(78, 0) primary key,
  gtin text not null,
  serial text not null,
  registered_at timestamptz not null default clock_timestamp(),
  constraint item_token check (token_id >= 0 and token_id < 2::numeric ^ 256),
  constraint item_gtin check (case when gtin ~ '^[0-9]{14}$' then (
    3 * (substr(gtin, 1, 1)::int + substr(gtin, 3, 1)::int + substr(gtin, 5, 1)::int + substr(gtin, 7, 1)::int
      + substr(gtin, 9, 1)::int + substr(gtin, 11, 1)::int + substr(gtin, 13, 1)::int)
    + substr(gtin, 2, 1)::int + substr(gtin, 4, 1)::int + substr(gtin, 6, 1)::int + substr(gtin, 8, 1)::int
    + substr(gtin, 10, 1)::int + substr(gtin, 12, 1)::int + substr(gtin, 14, 1)::int) % 10 = 0 else false end),
  constraint item_serial check (serial ~ '^[!"%-?A-Z_a-z]{1,20}$' and serial not in ('.', '..')),
  constraint item_key unique (gtin, serial)
);
insert into item (token_id, gtin, serial) select token_id, gtin, serial from tag where token_id is not null and gtin is not null;
alter table tag drop column gtin, drop column serial;

-- A token has one place, the same in every list of this number, given once and never to another.
create table status_place (
  token_id numeric(78, 0) primary key,
  list int not null check (list >= 1),
  entry int not null check (entry between 0 and 131071),
  unique (list, entry)
);
