-- The public halves of the issuer's keys (spec §9), so that instances whose key files differ find out at their start: each of them
-- publishes one list of keys, and a passport that one has signed is checked against the list of another.
create table issuer_key (
  id text primary key check (id ~ '^key-[1-9][0-9]{0,5}$'),
  -- The coordinates of the JWK, base64url, with a dot between them.
  public_key text not null check (length(public_key) between 1 and 200)
);
