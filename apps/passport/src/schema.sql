-- schema: documents and their facts, snapshots, rules, batteries, passport versions, events and webhooks; all of a tenant's own.
-- Every reference carries the tenant: no row can point at another tenant's. The id of a version alone is unique among
-- all tenants: a label names it and no tenant.

create table if not exists passport_document_version (
  tenant_id           text not null,
  document_version_id text not null,
  format              text not null check (format in ('csv', 'json')),
  content             bytea not null,
  uploaded_at         timestamptz not null,
  -- When its facts were stored; null until then.
  parsed_at           timestamptz,
  primary key (tenant_id, document_version_id)
);

create table if not exists passport_fact (
  tenant_id      text not null,
  fact_type      text not null,
  fact_key       text not null,
  schema_version bigint not null check (schema_version > 0),
  payload_hash   text not null check (length(payload_hash) = 64),
  -- Canonical JSON, kept as text: its bytes are what is hashed.
  payload        text not null,
  unique (tenant_id, fact_type, fact_key, schema_version, payload_hash)
);

-- Which document says which fact, on which of its lines.
create table if not exists passport_document_fact (
  tenant_id           text not null,
  document_version_id text not null,
  fact_type           text not null,
  fact_key            text not null,
  schema_version      bigint not null,
  payload_hash        text not null,
  line                bigint not null,
  unique (tenant_id, document_version_id, fact_type, fact_key, schema_version, payload_hash),
  foreign key (tenant_id, document_version_id)
    references passport_document_version (tenant_id, document_version_id),
  foreign key (tenant_id, fact_type, fact_key, schema_version, payload_hash)
    references passport_fact (tenant_id, fact_type, fact_key, schema_version, payload_hash)
);

-- The facts of one document, as somebody vouches for them.
create table if not exists passport_snapshot (
  tenant_id           text not null,
  snapshot_id         text not null,
  document_version_id text not null,
  status              text not null check (status in ('OPEN', 'SEALED')),
  sealed_at           timestamptz,
  primary key (tenant_id, snapshot_id),
  foreign key (tenant_id, document_version_id)
    references passport_document_version (tenant_id, document_version_id),
  check ((status = 'SEALED') = (sealed_at is not null))
);

create table if not exists passport_rule_package (
  tenant_id    text not null,
  rules_id     text not null,
  status       text not null check (status in ('DRAFT', 'PUBLISHED')),
  -- Canonical JSON.
  rules        text not null,
  published_at timestamptz,
  primary key (tenant_id, rules_id),
  check ((status = 'PUBLISHED') = (published_at is not null))
);

create table if not exists passport_battery (
  tenant_id       text not null,
  passport_id     text not null,
  serial          text not null,
  model           text not null,
  category        text not null,
  capacity_ah     text not null,
  manufactured_on text not null,
  primary key (tenant_id, passport_id),
  unique (tenant_id, serial)
);

create table if not exists passport_version (
  tenant_id           text not null,
  passport_version_id text not null unique,
  passport_id         text not null,
  snapshot_id         text not null,
  rules_id            text not null,
  build_id            text not null,
  issued_at           timestamptz not null,
  status              text not null check (status in ('COMPILED', 'SIGNED', 'LABELED')),
  payload             text not null,
  payload_hash        text not null check (length(payload_hash) = 64),
  proof_root          text not null check (length(proof_root) = 64),
  receipt             text not null,
  receipt_hash        text not null check (length(receipt_hash) = 64),
  key_id              text,
  signature           text check (length(signature) = 128),
  qr_text             text,
  qr_png              bytea,
  compiled_at         timestamptz not null,
  primary key (tenant_id, passport_version_id),
  unique (tenant_id, passport_id, snapshot_id, rules_id, build_id, issued_at),
  foreign key (tenant_id, passport_id) references passport_battery (tenant_id, passport_id),
  foreign key (tenant_id, snapshot_id) references passport_snapshot (tenant_id, snapshot_id),
  foreign key (tenant_id, rules_id) references passport_rule_package (tenant_id, rules_id),
  check ((status = 'COMPILED') = (signature is null)),
  check ((signature is null) = (key_id is null)),
  check ((status = 'LABELED') = (qr_png is not null)),
  check ((qr_png is null) = (qr_text is null))
);

-- Rows are added and never changed: a trigger of each store refuses everything else.
create table if not exists passport_event (
  tenant_id      text not null,
  event_id       text not null,
  event_type     text not null,
  aggregate_type text not null,
  aggregate_id   text not null,
  occurred_at    timestamptz not null,
  payload        text not null,
  -- The attempt that it came of; null for what a person did.
  job_id         text,
  fence          bigint,
  primary key (tenant_id, event_id),
  unique (tenant_id, event_type, aggregate_id)
);

create table if not exists passport_webhook_endpoint (
  tenant_id           text not null,
  webhook_endpoint_id text not null,
  url                 text not null,
  -- Sealed with a key that is not in this database.
  secret              bytea not null,
  -- The one before it, while receivers still know that one only, and until when it signs.
  previous_secret     bytea,
  previous_until      timestamptz,
  created_at          timestamptz not null,
  disabled_at         timestamptz,
  disabled_why        text,
  primary key (tenant_id, webhook_endpoint_id),
  unique (tenant_id, url),
  check ((previous_secret is null) = (previous_until is null)),
  check ((disabled_at is null) = (disabled_why is null))
);

create table if not exists passport_webhook_delivery (
  tenant_id           text not null,
  webhook_delivery_id text not null,
  webhook_endpoint_id text not null,
  event_id            text not null,
  -- Who sends it: where that job has ended, nobody does any more.
  job_id              text not null,
  status              text not null check (status in ('PENDING', 'DELIVERED', 'FAILED')),
  attempts            bigint not null,
  -- The lease of the last attempt that wrote here: an older one writes nothing.
  fence               bigint not null,
  http_status         bigint,
  response_headers    jsonb,
  response_body       bytea,
  error_message       text,
  created_at          timestamptz not null,
  delivered_at        timestamptz,
  primary key (tenant_id, webhook_delivery_id),
  unique (tenant_id, webhook_endpoint_id, event_id),
  foreign key (tenant_id, webhook_endpoint_id)
    references passport_webhook_endpoint (tenant_id, webhook_endpoint_id),
  foreign key (tenant_id, event_id) references passport_event (tenant_id, event_id),
  check ((status = 'DELIVERED') = (delivered_at is not null))
);
