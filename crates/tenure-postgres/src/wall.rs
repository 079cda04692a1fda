//! The second wall: what a tenant asks for runs as a role that the database itself binds to that tenant.
//!
//! The first wall is the tenant that every such statement names. Were it forgotten in one of them, row-level security
//! would still leave out what is another tenant's. Where the roles are installed (`roles.rs`) and this user may take
//! them, a *read* with a tenant's sight is one transaction
//!
//! ```text
//! begin; set local role tenure_api | set_config('tenure.tenant', $1, true) | the statement | commit
//! ```
//!
//! and a *verb*, which needs rights that no tenant has, is let pass only by a look with a tenant's eyes:
//!
//! ```text
//! begin | select tenure.see('tenant', 'job', id), which raises TN404 | the verb | commit
//! ```
//!
//! Both are sent together: one round trip, as without a wall. Role and tenant end with the transaction, or with the
//! look, so the next user of the connection has neither. A role that was dropped meanwhile fails the call: nothing is
//! answered without the wall that was found standing when the store was opened.

use std::borrow::Cow;

use tenure_store::StoreError;
use tenure_store::record::SecondWall;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::call::{Failed, Param};
use crate::pool::Desk;
use crate::statement::Statement;
use crate::store::PgStore;
use crate::value::get;

/// What the tenant's role reads instead: it has no right to what these stand for (`migrations/0016_own_views.sql`).
const OWN: [&str; 7] = ["jobs", "ready", "lease", "usages", "api_key", "webhook_endpoint", "state_of"];

const SET_TENANT: &str = "select set_config('tenure.tenant', $1, true)";
const SEE: &str = "select tenure.see($1, $2, $3)";

/// Why there is no wall, most often.
pub(crate) const NOT_INSTALLED: &str = "the roles are not installed: tenure migrate --roles";

/// Whether there is a wall, and whether this user may go behind it: the one that logged in, as `set role` asks.
const LOOK: Statement = Statement {
    name: "look_at_wall",
    sql: "select exists (select from pg_policies where schemaname = 'tenure' and tablename = 'job' and policyname = 'own') as bound,
          exists (select from pg_roles r where r.rolname = 'tenure_api' and pg_has_role(session_user, r.oid,
            case when current_setting('server_version_num')::int < 160000 then 'member' else 'set' end)) as may_bind",
};

/// What a call passes on its way.
#[derive(Clone, Copy)]
pub(crate) enum Wall<'a> {
    /// Nothing: everything is in sight.
    Open,
    /// The statement itself runs as the role of this tenant.
    Within(&'a str),
    /// The statement runs when this tenant sees what it is about.
    Past(&'a str, Seen<'a>),
}

/// What must be seen, each by its key.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'a> {
    Job(&'a uuid::Uuid),
    Run(&'a uuid::Uuid),
    Key(&'a str),
    Schedule(&'a str),
    Endpoint(&'a uuid::Uuid),
}

impl Wall<'_> {
    /// What `begin` says beside its settings.
    pub(crate) fn role(&self) -> &'static str {
        match self {
            Self::Within(_) => "; set local role tenure_api",
            Self::Open | Self::Past(..) => "",
        }
    }

    /// What is sent between `begin` and the statement.
    pub(crate) async fn pass(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        match self {
            Self::Open => Ok(()),
            Self::Within(tenant) => client.query_typed(SET_TENANT, &[(tenant, Type::TEXT)]).await.map(drop),
            Self::Past(tenant, seen) => {
                let (noun, key) = seen.named();
                client
                    .query_typed(SEE, &[(tenant, Type::TEXT), (&noun, Type::TEXT), (&key, Type::TEXT)])
                    .await
                    .map(drop)
            }
        }
    }

    /// A statement in the words of whoever runs it.
    pub(crate) fn text(&self, sql: Cow<'static, str>) -> Cow<'static, str> {
        match self {
            Self::Within(_) => Cow::Owned(own(&sql)),
            Self::Open | Self::Past(..) => sql,
        }
    }
}

impl Seen<'_> {
    fn named(&self) -> (&'static str, String) {
        match self {
            Self::Job(id) => ("job", id.to_string()),
            Self::Run(id) => ("run", id.to_string()),
            Self::Key(id) => ("key", (*id).to_owned()),
            Self::Schedule(name) => ("schedule", (*name).to_owned()),
            Self::Endpoint(id) => ("endpoint", id.to_string()),
        }
    }
}

impl PgStore {
    /// Reads what is in a tenant's sight; `None` sees all.
    pub(crate) async fn call_within(
        &self,
        tenant: Option<&str>,
        desk: Desk,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let wall = self.walled(tenant).map_or(Wall::Open, Wall::Within);
        Ok(self.call_walled(wall, desk, statement, params).await?)
    }

    /// Runs a verb on what must be in a tenant's sight; `None` sees all.
    pub(crate) async fn call_past(
        &self,
        tenant: Option<&str>,
        seen: Seen<'_>,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let wall = self.walled(tenant).map_or(Wall::Open, |tenant| Wall::Past(tenant, seen));
        Ok(self.call_walled(wall, Desk::Short, statement, params).await?)
    }

    /// Refuses what is out of a tenant's sight, in a transaction that goes on with other rights.
    pub(crate) async fn see(&self, client: &Client, tenant: Option<&str>, seen: Seen<'_>) -> Result<(), Failed> {
        match self.walled(tenant) {
            Some(tenant) => Ok(Wall::Past(tenant, seen).pass(client).await?),
            None => Ok(()),
        }
    }

    /// How the wall stands now.
    pub(crate) async fn look_at_wall(&self) -> Result<SecondWall, StoreError> {
        let rows = self.call(Desk::Long, LOOK, &[]).await?;
        let Some(row) = rows.first() else { return Ok(SecondWall::None) };
        Ok(match (get(row, "bound")?, get(row, "may_bind")?) {
            (true, true) => SecondWall::Stands,
            (true, false) => SecondWall::Missing("this user may not take the role: grant tenure_api to it"),
            (false, _) => SecondWall::Missing(NOT_INSTALLED),
        })
    }

    /// The tenant to bind a call to, where there is a wall.
    fn walled<'a>(&self, tenant: Option<&'a str>) -> Option<&'a str> {
        tenant.filter(|_| self.wall() == SecondWall::Stands)
    }
}

/// The names that the tenant's role has a right to.
fn own(sql: &str) -> String {
    let mut pieces = sql.split("tenure.");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(piece.len());
        text += if OWN.contains(&&piece[..end]) { "tenure.own_" } else { "tenure." };
        text += piece;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::own;

    #[test]
    fn only_whole_names_are_replaced() {
        let sql = "select tenure.state_of(r.job) from tenure.ready r join tenure.job j on true, tenure.lease_no_seq, tenure.jobs";
        let walled = "select tenure.own_state_of(r.job) from tenure.own_ready r join tenure.job j on true, tenure.lease_no_seq, tenure.own_jobs";
        assert_eq!(own(sql), walled);
    }
}
