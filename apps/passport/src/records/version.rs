//! Passport versions: COMPILED, then SIGNED, then LABELED.

use tenure::{Database, Record, StoreError, TenantName, Tx, row};
use uuid::Uuid;

use crate::code::Refusal;
use crate::digest::Digest;
use crate::halt::Halt;
use crate::passport::Compiled;
use crate::receipt::Receipt;
use crate::sign::{KeyId, Signature};
use crate::version::{BuildId, VersionKey};

/// A version as it is stored, without the picture of its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVersion {
    /// Its id.
    pub id: Uuid,
    /// Of what it is.
    pub key: VersionKey,
    /// COMPILED, SIGNED or LABELED.
    pub status: String,
    /// The passport's text.
    pub payload: String,
    /// The hash that it was stored with.
    pub payload_hash: String,
    /// The root of the proof over its facts.
    pub proof_root: String,
    /// The receipt's text.
    pub receipt: String,
    /// The hash that it was stored with.
    pub receipt_hash: String,
    /// Who signed it.
    pub key_id: Option<String>,
    /// And how.
    pub signature: Option<String>,
    /// Its label.
    pub qr_text: Option<String>,
}

macro_rules! select_where {
    ($condition:literal) => {
        concat!(
            "select tenant_id, passport_version_id, passport_id, snapshot_id, rules_id, build_id, issued_at, status, \
             payload, payload_hash, proof_root, receipt, receipt_hash, key_id, signature, qr_text \
             from passport_version where ",
            $condition
        )
    };
}

impl StoredVersion {
    /// Stores what was compiled; `false` when it is there already.
    pub fn add(tx: &Tx<'_>, compiled: &Compiled) -> Result<bool, Halt> {
        let Compiled { payload, receipt, receipt_text, .. } = compiled;
        let (key, id) = (&receipt.key, receipt.passport_version_id);
        // Asked first: a trigger of SQLite refuses a second one before it is found to be one.
        if Self::status(tx, &key.tenant, id)?.is_some() {
            return Ok(false);
        }
        let row = row![
            key.tenant.as_str(),
            id.to_string(),
            key.passport_id.to_string(),
            key.snapshot_id.to_string(),
            key.rules_id.to_string(),
            key.build_id.as_str(),
            key.issued_at,
            payload.as_str(),
            payload.hash().to_hex(),
            receipt.proof_root.to_hex(),
            receipt_text.as_str(),
            receipt_text.hash().to_hex(),
            tx.now()?
        ];
        Ok(tx.execute(include_str!("../sql/add_version.sql"), row)? == 1)
    }

    /// How far it is, if it is there.
    pub fn status(tx: &Tx<'_>, tenant: &TenantName, id: Uuid) -> Result<Option<String>, StoreError> {
        let select = "select status from passport_version where tenant_id = $1 and passport_version_id = $2";
        let found = tx.query_first(select, row![tenant.as_str(), id.to_string()])?;
        found.map(|row| row.get("status")).transpose()
    }

    /// Stores its signature; `false` when it has one already.
    pub fn sign(
        tx: &Tx<'_>,
        tenant: &TenantName,
        id: Uuid,
        key_id: &KeyId,
        signature: Signature,
    ) -> Result<bool, Halt> {
        let update = "update passport_version set status = 'SIGNED', key_id = $3, signature = $4 \
                      where tenant_id = $1 and passport_version_id = $2 and status = 'COMPILED'";
        let row = row![tenant.as_str(), id.to_string(), key_id.as_str(), signature.to_hex()];
        Ok(tx.execute(update, row)? == 1)
    }

    /// Stores its label; `false` when it has one already.
    pub fn label(tx: &Tx<'_>, tenant: &TenantName, id: Uuid, text: &str, png: Vec<u8>) -> Result<bool, Halt> {
        let update = "update passport_version set status = 'LABELED', qr_text = $3, qr_png = $4 \
                      where tenant_id = $1 and passport_version_id = $2 and status = 'SIGNED'";
        Ok(tx.execute(update, row![tenant.as_str(), id.to_string(), text, png])? == 1)
    }

    /// The one of this id, if the tenant has it.
    pub async fn find(database: &Database, tenant: &TenantName, id: Uuid) -> Result<Option<Self>, Halt> {
        let select = select_where!("tenant_id = $1 and passport_version_id = $2");
        let found = database.query(select, row![tenant.as_str(), id.to_string()]).await?;
        Ok(found.first().map(Self::read).transpose()?)
    }

    /// The one of this id, whoever's it is: a label does not say. For whoever operates all tenants, and nobody else.
    pub async fn find_of_any_tenant(database: &Database, id: Uuid) -> Result<Option<Self>, StoreError> {
        let select = select_where!("passport_version_id = $1");
        let found = database.query(select, row![id.to_string()]).await?;
        found.first().map(Self::read).transpose()
    }

    /// The picture of its label, if it has one.
    pub async fn picture(database: &Database, tenant: &TenantName, id: Uuid) -> Result<Option<Vec<u8>>, Halt> {
        let select = "select qr_png from passport_version where tenant_id = $1 and passport_version_id = $2";
        let found = database.query(select, row![tenant.as_str(), id.to_string()]).await?;
        Ok(found.first().map(|row| row.get("qr_png")).transpose()?.flatten())
    }

    /// Refuses a row that is not what its facts, its battery and its rules make of it: nothing else is signed.
    pub fn check(&self, compiled: &Compiled) -> Result<(), Refusal> {
        let (payload, receipt) = (&compiled.payload, &compiled.receipt_text);
        let columns = [
            ("passport_version_id", self.id.to_string(), compiled.receipt.passport_version_id.to_string()),
            ("payload", self.payload.clone(), payload.as_str().to_owned()),
            ("payload_hash", self.payload_hash.clone(), payload.hash().to_hex()),
            ("proof_root", self.proof_root.clone(), compiled.tree.root().to_hex()),
            ("receipt", self.receipt.clone(), receipt.as_str().to_owned()),
            ("receipt_hash", self.receipt_hash.clone(), receipt.hash().to_hex()),
        ];
        match columns.iter().find(|(_, stored, made)| stored != made) {
            None => Ok(()),
            Some((column, ..)) => {
                Err(self.changed(&format!("its {column} is not what its facts and rules make of it")))
            }
        }
    }

    /// Its receipt, read and compared with the row that it stands in: nothing else is printed.
    pub fn checked_receipt(&self) -> Result<(Receipt, Digest), Refusal> {
        let (receipt, hash) = (Receipt::read(&self.receipt)?, Digest::of(self.receipt.as_bytes()));
        if hash.to_hex() != self.receipt_hash {
            return Err(
                self.changed(&format!("its receipt has the hash {hash}, and was stored with {}", self.receipt_hash))
            );
        }
        if receipt.passport_version_id != self.id || receipt.key != self.key {
            let Receipt { passport_version_id, key, .. } = receipt;
            return Err(self.changed(&format!("its receipt is of version {passport_version_id} of `{}`", key.tenant)));
        }
        Ok((receipt, hash))
    }

    fn changed(&self, why: &str) -> Refusal {
        Refusal::invalid(format!("passport version `{}` was changed: {why}", self.id))
    }

    fn read(row: &Record) -> Result<Self, StoreError> {
        let (tenant, build_id): (String, String) = (row.get("tenant_id")?, row.get("build_id")?);
        let key = VersionKey {
            tenant: TenantName::new(tenant)?,
            passport_id: super::id(row, "passport_id")?,
            snapshot_id: super::id(row, "snapshot_id")?,
            rules_id: super::id(row, "rules_id")?,
            build_id: BuildId::new(build_id)?,
            issued_at: row.get("issued_at")?,
        };
        Ok(Self {
            id: super::id(row, "passport_version_id")?,
            key,
            status: row.get("status")?,
            payload: row.get("payload")?,
            payload_hash: row.get("payload_hash")?,
            proof_root: row.get("proof_root")?,
            receipt: row.get("receipt")?,
            receipt_hash: row.get("receipt_hash")?,
            key_id: row.get("key_id")?,
            signature: row.get("signature")?,
            qr_text: row.get("qr_text")?,
        })
    }
}
