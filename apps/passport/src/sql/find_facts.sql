-- find_facts: what a document says, in the order of its lines; zero rows: it was not parsed, or is another tenant's.
select f.fact_type, f.fact_key, f.schema_version, f.payload_hash, f.payload
from passport_document_fact d
join passport_fact f
  on f.tenant_id = d.tenant_id and f.fact_type = d.fact_type and f.fact_key = d.fact_key
  and f.schema_version = d.schema_version and f.payload_hash = d.payload_hash
where d.tenant_id = $1 and d.document_version_id = $2
order by d.line
