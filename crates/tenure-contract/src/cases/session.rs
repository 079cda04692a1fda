//! Sessions of people who signed in with a key.

use std::time::Duration;

use tenure_core::KeyId;
use tenure_core::name::TenantName;
use tenure_store::StoreError;
use tenure_store::access::{
    NewKey, NewSession, RevokeKey, SESSION_MAX, SESSION_MIN, SESSIONS_MAX, SessionRecord, SetTenant,
};
use tenure_store::operate::Word;
use tenure_store::record::Sight;

use super::access::key;
use super::situation::both;
use crate::fixture::Fixture;

const HOUR: Duration = Duration::from_secs(3_600);

async fn make_key(t: &Fixture, number: u8) -> KeyId {
    let new: NewKey = key(number, None);
    t.store.create_key(new).await.expect("create").id
}

fn session(token: u8, key: &KeyId) -> NewSession {
    NewSession { token_hash: [token; 32], key: key.clone(), lasts: HOUR }
}

async fn found(t: &Fixture, token: u8) -> Option<SessionRecord> {
    t.store.find_session(&[token; 32]).await.expect("find")
}

/// By the store's clock, to the moment; and a revoked key is for the caller to see.
pub async fn a_session_lasts_until_its_time_is_over(t: Fixture) {
    let key = make_key(&t, 1).await;
    t.store.begin_session(session(1, &key)).await.expect("begin");
    let (began_at, expires_at) = (t.clock.now(), t.clock.now().plus(HOUR));
    let wanted = SessionRecord { key: key.clone(), began_at, expires_at };
    assert_eq!(found(&t, 1).await, Some(wanted.clone()));
    assert_eq!(found(&t, 2).await, None, "nobody has this token");
    t.advance(HOUR - Duration::from_micros(1));
    let revoke = RevokeKey { sight: Sight::All, key, word: Word::default() };
    t.store.revoke_key(revoke).await.expect("revoke");
    assert_eq!(found(&t, 1).await, Some(wanted));
    t.advance(Duration::from_micros(1));
    assert_eq!(found(&t, 1).await, None);
}

/// The others go on.
pub async fn a_session_ends_when_somebody_signs_out(t: Fixture) {
    let key = make_key(&t, 1).await;
    for token in [1, 2] {
        t.store.begin_session(session(token, &key)).await.expect("begin");
    }
    for _ in 0..2 {
        t.store.end_session(&[1; 32]).await.expect("end");
        assert_eq!((found(&t, 1).await, found(&t, 2).await.is_some()), (None, true));
    }
}

/// The reply was lost: the second begin is the first one. Another key's session does not take its place.
pub async fn a_session_begun_twice_is_one_session(t: Fixture) {
    let (key, other) = (make_key(&t, 1).await, make_key(&t, 2).await);
    t.store.begin_session(session(1, &key)).await.expect("begin");
    let first = found(&t, 1).await;
    t.advance(Duration::from_secs(60));
    t.store.begin_session(session(1, &key)).await.expect("begin again");
    let taken = t.store.begin_session(session(1, &other)).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    assert_eq!(found(&t, 1).await, first);
}

/// Nothing of it is there, and what is over does not stand in the way of what begins.
pub async fn what_cannot_be_a_session_is_refused(t: Fixture) {
    let known = make_key(&t, 1).await;
    for lasts in [Duration::ZERO, SESSION_MIN - Duration::from_millis(1), SESSION_MAX + Duration::from_millis(1)] {
        match t.store.begin_session(NewSession { lasts, ..session(1, &known) }).await {
            Err(StoreError::Invalid(invalid)) => assert_eq!(invalid.field, "lasts"),
            other => panic!("{lasts:?}: {other:?}"),
        }
    }
    let unknown = t.store.begin_session(session(1, &key(9, None).id)).await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))), "{unknown:?}");
    assert_eq!(found(&t, 1).await, None);
    for (token, lasts) in [(1, SESSION_MIN), (2, SESSION_MAX)] {
        t.store.begin_session(NewSession { lasts, ..session(token, &known) }).await.expect("begin");
    }
    t.advance(HOUR);
    t.store.begin_session(session(3, &known)).await.expect("begin");
    let there = [found(&t, 1).await, found(&t, 2).await, found(&t, 3).await].map(|session| session.is_some());
    assert_eq!(there, [false, true, true]);
}

/// Sessions of operators' keys are not counted; one that is over and those of a revoked key make room.
pub async fn a_tenant_has_a_thousand_sessions_at_most(t: Fixture) {
    let tenant: TenantName = "acme".parse().expect("a name");
    let made = SetTenant { tenant: tenant.clone(), quota: None, word: Word::default() };
    t.store.set_tenant(made).await.expect("set");
    let of_acme = |number| key(number, Some("acme"));
    let first = t.store.create_key(of_acme(1)).await.expect("create").id;
    let second = t.store.create_key(of_acme(2)).await.expect("create").id;
    let operators = make_key(&t, 3).await;
    let begin = async |number: u32, key: &KeyId| {
        let mut token_hash = [0; 32];
        token_hash[..4].copy_from_slice(&number.to_be_bytes());
        t.store.begin_session(NewSession { token_hash, ..session(0, key) }).await
    };
    for number in 1..SESSIONS_MAX {
        begin(number, if number % 2 == 0 { &first } else { &second }).await.expect("begin");
    }
    let (one, other) = both(
        {
            let (t, key) = (t.clone(), first.clone());
            async move { t.store.begin_session(session(101, &key)).await }
        },
        {
            let (t, key) = (t.clone(), second.clone());
            async move { t.store.begin_session(session(102, &key)).await }
        },
    )
    .await;
    assert!(
        matches!((&one, &other), (Ok(()), Err(StoreError::Limit(_))) | (Err(StoreError::Limit(_)), Ok(()))),
        "{one:?} {other:?}"
    );
    match begin(5_000, &first).await {
        Err(StoreError::Limit(text)) => {
            assert!(text.starts_with("sessions of tenant `acme`: 1000 is the limit; "), "{text}");
        }
        other => panic!("{other:?}"),
    }
    begin(1, &second).await.expect("the one that was begun before is begun");
    begin(5_001, &operators).await.expect("operators have no limit");
    let revoke = RevokeKey { sight: Sight::All, key: second, word: Word::default() };
    t.store.revoke_key(revoke).await.expect("revoke");
    begin(5_002, &first).await.expect("there is room again");
}
