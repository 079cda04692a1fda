//! Webhook endpoints: who is told what happens to a tenant's things, and with which secret.

use std::time::Duration;

use tenure::webhooks::{MasterKeys, Owner, SealedSecret, Secret};
use tenure::{Database, Record, StoreError, TenantName, Timestamp, Tx, row};
use uuid::Uuid;

use crate::app::App;
use crate::code::{Code, Refusal};
use crate::halt::Halt;
use crate::id::derived;

/// Most endpoints of a tenant that are told: each event goes to all of them.
pub const ENDPOINTS_MAX: usize = 20;
/// How long the secret before the newest still signs.
pub const OVERLAP: Duration = Duration::from_secs(86_400);
/// The gates of all endpoints.
pub const ENDPOINTS: &str = "passport.endpoint:*";

/// An endpoint as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Follows from its URL.
    pub id: Uuid,
    /// Where it is.
    pub url: String,
    /// Why nothing goes there any more.
    pub disabled_why: Option<String>,
}

/// Adds an endpoint, and answers its id and its secret, which is shown this once.
pub async fn create(app: &App, tenant: &TenantName, url: &str) -> Result<(Uuid, Secret), Halt> {
    app.sender().guard().check_url(url).map_err(|why| Refusal::invalid(format!("the endpoint is refused: {why}")))?;
    let id = derived("endpoint", &[tenant.as_str(), url])?;
    let secret = Secret::generate();
    let sealed = seal(app.seals()?, tenant, id, &secret);
    let (tenant, url, is_postgres) = (tenant.clone(), url.to_owned(), app.database().is_postgres());
    let work = move |tx: &Tx<'_>| {
        check_room(tx, &tenant, is_postgres)?;
        let insert = "insert into passport_webhook_endpoint (tenant_id, webhook_endpoint_id, url, secret, created_at) \
                      values ($1, $2, $3, $4, $5) on conflict do nothing";
        match tx.execute(insert, row![tenant.as_str(), id.to_string(), url, sealed, tx.now()?])? {
            1 => Ok(id),
            _ => Err(Refusal::invalid(format!("endpoint `{id}` has this URL already: rotate its secret")).into()),
        }
    };
    let id = app.database().transaction(work).await as Result<Uuid, Halt>;
    Ok((id?, secret))
}

/// Gives an endpoint another secret. `X-BPC-Signature` is by the new one from now on: a receiver that checks it takes both
/// during the change. `webhook-signature` is by the one before as well, for [`OVERLAP`]. An endpoint that was disabled is
/// told again.
pub async fn rotate(app: &App, tenant: &TenantName, id: Uuid) -> Result<Option<Secret>, Halt> {
    let secret = Secret::generate();
    let sealed = seal(app.seals()?, tenant, id, &secret);
    let (tenant, is_postgres) = (tenant.clone(), app.database().is_postgres());
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        let select = "select disabled_at is not null as is_disabled from passport_webhook_endpoint \
                      where tenant_id = $1 and webhook_endpoint_id = $2";
        let found = tx.query_first(select, row![tenant.as_str(), id.to_string()])?;
        let Some(found) = found else { return Ok(false) };
        if found.get("is_disabled")? {
            check_room(tx, &tenant, is_postgres)?;
        }
        let update = "update passport_webhook_endpoint set previous_secret = secret, previous_until = $4, secret = $3, \
                      disabled_at = null, disabled_why = null \
                      where tenant_id = $1 and webhook_endpoint_id = $2";
        let until = tx.now()?.plus(OVERLAP);
        Ok(tx.execute(update, row![tenant.as_str(), id.to_string(), sealed, until])? == 1)
    };
    Ok(app.database().transaction(work).await?.then_some(secret))
}

/// Refuses one more than can be told. Who counts on Postgres waits for whoever counts: both would find the last room.
fn check_room(tx: &Tx<'_>, tenant: &TenantName, is_postgres: bool) -> Result<(), Halt> {
    if is_postgres {
        let lock = "select 1 as one from pg_advisory_xact_lock(hashtextextended('passport endpoints of ' || $1, 0))";
        tx.query(lock, row![tenant.as_str()])?;
    }
    let select =
        "select webhook_endpoint_id from passport_webhook_endpoint where tenant_id = $1 and disabled_at is null";
    if tx.query(select, row![tenant.as_str()])?.len() < ENDPOINTS_MAX {
        return Ok(());
    }
    let why = format!("the endpoint is refused: {ENDPOINTS_MAX} of a tenant are told at most, remove one first");
    Err(Refusal::invalid(why).into())
}

/// Takes an endpoint out; `false` when the tenant has none of this id. Its row stays, for the deliveries that name it.
pub async fn remove(app: &App, tenant: &TenantName, id: Uuid) -> Result<bool, Halt> {
    let tenant = tenant.clone();
    let work = move |tx: &Tx<'_>| -> Result<_, Halt> {
        disable(tx, &tenant, id, "it was removed")?;
        let select = "select 1 as one from passport_webhook_endpoint where tenant_id = $1 and webhook_endpoint_id = $2";
        Ok(tx.query_first(select, row![tenant.as_str(), id.to_string()])?.is_some())
    };
    app.database().transaction(work).await
}

/// Nothing goes there any more.
pub fn disable(tx: &Tx<'_>, tenant: &TenantName, id: Uuid, why: &str) -> Result<(), StoreError> {
    let update = "update passport_webhook_endpoint set disabled_at = $3, disabled_why = $4 \
                  where tenant_id = $1 and webhook_endpoint_id = $2 and disabled_at is null";
    tx.execute(update, row![tenant.as_str(), id.to_string(), tx.now()?, why])?;
    Ok(())
}

/// A tenant's endpoints.
pub async fn list(database: &Database, tenant: &TenantName) -> Result<Vec<Endpoint>, Halt> {
    let select = "select webhook_endpoint_id, url, disabled_why from passport_webhook_endpoint \
                  where tenant_id = $1 order by created_at, webhook_endpoint_id";
    let rows = database.query(select, row![tenant.as_str()]).await?;
    let read = |row: &Record| -> Result<Endpoint, StoreError> {
        let id = super::id(row, "webhook_endpoint_id")?;
        Ok(Endpoint { id, url: row.get("url")?, disabled_why: row.get("disabled_why")? })
    };
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

/// The gate that deliveries to an endpoint pass.
pub fn gate(id: &str) -> String {
    format!("{}{id}", ENDPOINTS.trim_end_matches('*'))
}

/// The secrets that sign now, the newest first, from a row with `secret`, `previous_secret` and `previous_until`.
pub fn secrets(
    seals: &MasterKeys,
    tenant: &TenantName,
    id: Uuid,
    row: &Record,
    now: Timestamp,
) -> Result<Vec<Secret>, Refusal> {
    let id = id.to_string();
    let owner = Owner { tenant, endpoint: &id };
    let unread = |error: StoreError| Refusal::invalid(error.to_string());
    let sealed = |column| row.get::<Option<Vec<u8>>>(column).map_err(unread);
    let until = row.get::<Option<Timestamp>>("previous_until").map_err(unread)?;
    let previous = sealed("previous_secret")?.filter(|_| until.is_some_and(|until| until > now));
    let sealed = [sealed("secret")?, previous];
    let open = |sealed: Vec<u8>| {
        let opened = SealedSecret::from_bytes(&sealed).and_then(|sealed| seals.open(&sealed, owner));
        opened.map_err(|why| {
            Refusal::new(Code::SigningKeyMissing, format!("endpoint `{id}` cannot be signed for: {why}"))
        })
    };
    sealed.into_iter().flatten().map(open).collect()
}

fn seal(seals: &MasterKeys, tenant: &TenantName, id: Uuid, secret: &Secret) -> Vec<u8> {
    seals.seal(secret, Owner { tenant, endpoint: &id.to_string() }).to_bytes()
}

/// When a row was written, as people read it.
pub(crate) fn time(row: &Record, column: &str) -> Result<Option<String>, StoreError> {
    Ok(row.get::<Option<Timestamp>>(column)?.map(|at| at.to_string()))
}
