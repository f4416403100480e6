-- Functions that SQLite has, for statements that both databases read. Documents are JSON in columns of text.
CREATE OR REPLACE FUNCTION instr(whole text, part text) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT strpos(whole, part)';
CREATE OR REPLACE FUNCTION julianday(moment text) RETURNS double precision
    LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT extract(epoch FROM clock_timestamp())::double precision / 86400 + 2440587.5';
CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT jsonb_path_query_first(document::jsonb, path::jsonpath) #>> '{}' $$;
CREATE OR REPLACE FUNCTION json_each(document text, path text) RETURNS TABLE (value text)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT jsonb_path_query(document::jsonb, (path || '[*]')::jsonpath) #>> '{}' $$;
-- RFC 7396: objects are merged, and null removes.
CREATE OR REPLACE FUNCTION json_merge(target jsonb, patch jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE WHEN jsonb_typeof(patch) <> 'object' THEN patch ELSE (
            SELECT coalesce(jsonb_object_agg(key, CASE WHEN new IS NULL THEN old ELSE json_merge(old, new) END), '{}')
            FROM (SELECT key, value AS old FROM jsonb_each(CASE jsonb_typeof(target) WHEN 'object' THEN target ELSE '{}' END)) AS a
            FULL JOIN (SELECT key, value AS new FROM jsonb_each(patch)) AS b USING (key)
            WHERE new IS DISTINCT FROM 'null'
        ) END $$;
CREATE OR REPLACE FUNCTION json_patch(target text, patch text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT json_merge(target::jsonb, patch::jsonb)::text';
