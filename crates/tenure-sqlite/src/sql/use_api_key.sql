-- use_api_key.sql: a key was used.
-- Zero rows means that there is none of this id.
update api_key set used_at = :now where api_key.id = :id;
