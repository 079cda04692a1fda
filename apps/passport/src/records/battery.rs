//! Batteries, each with the id of its passport.

use tenure::{Database, TenantName, Tx, row};
use uuid::Uuid;

use crate::code::Refusal;
use crate::halt::Halt;
use crate::id::derived;
use crate::subject::Battery;

const FIND: &str = "select serial, model, category, capacity_ah, manufactured_on from passport_battery \
                    where tenant_id = $1 and passport_id = $2";

/// Stores a battery and answers the id of its passport, which follows from its serial. One that is there already stays;
/// told otherwise about it, this is refused.
pub fn add(tx: &Tx<'_>, tenant: &TenantName, battery: Battery) -> Result<Uuid, Halt> {
    let battery = battery.checked()?;
    let id = derived("passport", &[tenant.as_str(), &battery.serial])?;
    let insert = "insert into passport_battery \
                  (tenant_id, passport_id, serial, model, category, capacity_ah, manufactured_on) \
                  values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing";
    let Battery { serial, model, category, capacity_ah, manufactured_on } = battery.clone();
    let row = row![tenant.as_str(), id.to_string(), serial, model, category, capacity_ah, manufactured_on];
    if tx.execute(insert, row)? == 1 {
        return Ok(id);
    }
    let known = tx.query_first(FIND, row![tenant.as_str(), id.to_string()])?.map(|row| read(&row)).transpose()?;
    if known.as_ref() == Some(&battery) {
        return Ok(id);
    }
    let serial = &battery.serial;
    Err(Refusal::invalid(format!("battery `{serial}` is refused: it is known with other data, which stays")).into())
}

/// The battery of this passport, if the tenant has it.
pub async fn find(database: &Database, tenant: &TenantName, passport: Uuid) -> Result<Option<Battery>, Halt> {
    let found = database.query(FIND, row![tenant.as_str(), passport.to_string()]).await?;
    Ok(found.first().map(read).transpose()?)
}

fn read(row: &tenure::Record) -> Result<Battery, tenure::StoreError> {
    Ok(Battery {
        serial: row.get("serial")?,
        model: row.get("model")?,
        category: row.get("category")?,
        capacity_ah: row.get("capacity_ah")?,
        manufactured_on: row.get("manufactured_on")?,
    })
}
