//! TLS against a real server: `sslmode` means what it means everywhere.

use tenure_contract::postgres_server::{Options, Postgres};
use tenure_postgres::{PgOptions, PgStore};
use tenure_store::{AdminStore, StoreError};

/// Connects and asks the server whether the connection is encrypted.
async fn is_encrypted(url: &str) -> Result<bool, StoreError> {
    let store = PgStore::connect(url, PgOptions::default()).await?;
    store.migrate().await?;
    let sql = "select bool_and(ssl) from pg_stat_ssl s join pg_stat_activity a using (pid) where a.application_name = 'tenure'";
    Ok(tenure_contract::postgres_server::psql(url.split('?').next().expect("a URL"), sql).expect("psql") == "t")
}

#[tokio::test]
async fn sslmode_means_what_it_means_everywhere() {
    let server = Postgres::start(&Options { tls: true, ..Options::default() }).expect("a server with TLS");
    let other = Postgres::start(&Options { tls: true, ..Options::default() }).expect("another");
    let url = server.admin_url();
    let root = server.root_certificate().display().to_string();
    let wrong = other.root_certificate().display().to_string();

    assert!(!is_encrypted(&format!("{url}?sslmode=disable")).await.expect("plain"));
    for mode in ["prefer", "require"] {
        assert!(is_encrypted(&format!("{url}?sslmode={mode}")).await.expect(mode), "{mode}");
    }
    assert!(is_encrypted(&format!("{url}?sslmode=verify-full&sslrootcert={root}")).await.expect("verified"));

    // Signed by somebody else, or by nobody the machine trusts: refused.
    for query in [format!("sslmode=verify-full&sslrootcert={wrong}"), format!("sslmode=require&sslrootcert={wrong}")] {
        let refused = is_encrypted(&format!("{url}?{query}")).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(..))), "{query}: {refused:?}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_met_in_plain_text_only_when_allowed() {
    let server = Postgres::start(&Options::default()).expect("a server without TLS");
    let url = server.admin_url();
    assert!(!is_encrypted(&format!("{url}?sslmode=prefer")).await.expect("plain"));
    let refused = is_encrypted(&format!("{url}?sslmode=require")).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(..))), "{refused:?}");
}
