//! Tenants, keys, and the tokens of workers that come over HTTP.

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::key::{Credential, KEY_RANDOM_BYTES};
use tenure_core::name::{TenantName, WorkerName};
use tenure_core::{KeyId, Scope, Scopes, WorkerId};
use tenure_store::StoreError;
use tenure_store::access::{
    KEYS_MAX, KeyFilter, KeyRecord, NewKey, NewRemote, RemoteToken, RevokeKey, SetTenant, TenantFilter, TenantRecord,
};
use tenure_store::operate::{Quota, Word};
use tenure_store::record::Sight;

use super::situation::both;
use crate::fixture::Fixture;

const HOUR: Duration = Duration::from_secs(3_600);

fn tenant(name: &str) -> TenantName {
    name.parse().expect("a name")
}

fn sight(name: &str) -> Sight {
    Sight::Tenant(tenant(name))
}

/// A key that differs from others by its number, in the order of the numbers.
pub(super) fn key(number: u8, owner: Option<&str>) -> NewKey {
    let mut random = [7; KEY_RANDOM_BYTES];
    random[0] = number;
    let (id, credential) = Credential::new_key(random);
    NewKey {
        id,
        hash: credential.hash(),
        tenant: owner.map(tenant),
        name: format!("key {number}"),
        scopes: Scopes::new([Scope::Read, Scope::Enqueue]).expect("some"),
        life: None,
        replaces: None,
        word: Word::default(),
    }
}

async fn make_tenant(t: &Fixture, name: &str) {
    let request = SetTenant { tenant: tenant(name), quota: None, word: Word::default() };
    assert!(t.store.set_tenant(request).await.expect("set"), "{name} is new");
}

async fn make(t: &Fixture, new: NewKey) -> KeyRecord {
    t.store.create_key(new).await.expect("create")
}

async fn find(t: &Fixture, key: &KeyId) -> KeyRecord {
    t.store.find_key(key).await.expect("find").expect("it is there")
}

async fn listed(t: &Fixture, filter: KeyFilter) -> Vec<KeyId> {
    t.store.list_keys(&filter).await.expect("list").into_iter().map(|key| key.id).collect()
}

fn good(sight: Sight) -> KeyFilter {
    KeyFilter { sight, ended_too: false, after: None, limit: 100 }
}

fn revoke(sight: Sight, key: &KeyId) -> RevokeKey {
    RevokeKey { sight, key: key.clone(), word: Word::default() }
}

/// Keys that are revoked or over are not counted, nor are operators' keys and those of other tenants.
pub async fn a_tenant_has_so_many_usable_keys_at_most(t: Fixture) {
    make_tenant(&t, "acme").await;
    make_tenant(&t, "other").await;
    let owned_by = |owner, number: u32| key(u8::try_from(number).expect("a small number"), owner);
    let of_acme = |number| owned_by(Some("acme"), number);
    for number in 1..KEYS_MAX {
        make(&t, of_acme(number)).await;
    }
    let (first, second) = (t.store.clone(), t.store.clone());
    let (one, other) = (of_acme(KEYS_MAX), of_acme(KEYS_MAX + 1));
    let (one, other) =
        both(async move { first.create_key(one).await }, async move { second.create_key(other).await }).await;
    assert!(
        matches!((&one, &other), (Ok(_), Err(StoreError::Limit(_))) | (Err(StoreError::Limit(_)), Ok(_))),
        "{one:?} {other:?}"
    );
    match t.store.create_key(of_acme(KEYS_MAX + 2)).await {
        Err(StoreError::Limit(text)) => {
            assert_eq!(text, "keys of tenant `acme`: 200 is the limit; revoke one with `tenure keys revoke KEY`");
        }
        other => panic!("{other:?}"),
    }
    make(&t, owned_by(None, KEYS_MAX + 2)).await;
    make(&t, owned_by(Some("other"), KEYS_MAX + 3)).await;
    // A key that takes another one's place at once needs no room; one that leaves the other good for a while does.
    let replacing = |number, overlap| NewKey { replaces: Some((of_acme(1).id, overlap)), ..of_acme(number) };
    let refused = t.store.create_key(replacing(KEYS_MAX + 4, HOUR)).await;
    assert!(matches!(refused, Err(StoreError::Limit(_))), "{refused:?}");
    make(&t, replacing(KEYS_MAX + 5, Duration::ZERO)).await;
    t.store.revoke_key(revoke(Sight::All, &of_acme(2).id)).await.expect("revoke");
    make(&t, of_acme(KEYS_MAX + 6)).await;
}

/// Every member of it, also when it was used.
pub async fn a_key_is_found_as_it_was_made(t: Fixture) {
    make_tenant(&t, "acme").await;
    let new = NewKey { life: Some(HOUR), name: "für das Lager".into(), ..key(1, Some("acme")) };
    let made = make(&t, new.clone()).await;
    let wanted = KeyRecord {
        id: new.id.clone(),
        hash: new.hash,
        tenant: new.tenant.clone(),
        name: new.name.clone(),
        scopes: new.scopes,
        created_at: t.clock.now(),
        expires_at: Some(t.clock.now().plus(HOUR)),
        revoked_at: None,
        used_at: None,
    };
    assert_eq!(made, wanted);
    assert_eq!(find(&t, &new.id).await, wanted);
    t.advance(Duration::from_secs(60));
    let invented = key(99, None).id;
    t.store.use_keys(vec![new.id.clone(), invented.clone()]).await.expect("use");
    assert_eq!(find(&t, &new.id).await, KeyRecord { used_at: Some(t.clock.now()), ..wanted });
    assert_eq!(t.store.find_key(&invented).await.expect("find"), None);
}

/// The reply was lost: the second answer is the first one's. The same id for something else is refused.
pub async fn a_key_made_twice_is_one_key(t: Fixture) {
    let first = make(&t, key(1, None)).await;
    t.advance(HOUR);
    assert_eq!(make(&t, key(1, None)).await, first);
    for other in [NewKey { hash: [1; 32], ..key(1, None) }, NewKey { name: "another".into(), ..key(1, None) }] {
        let taken = t.store.create_key(other).await;
        assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    }
    assert_eq!(t.journal().await.len(), 1);
    assert_eq!(find(&t, &first.id).await, first);
}

/// Both ends are for good, and a revocation is told once.
pub async fn a_key_ends_when_its_time_is_over_or_when_it_is_revoked(t: Fixture) {
    let short = make(&t, NewKey { life: Some(HOUR), ..key(1, None) }).await;
    let long = make(&t, key(2, None)).await;
    assert_eq!(listed(&t, good(Sight::All)).await, [short.id.clone(), long.id.clone()]);
    t.advance(HOUR);
    assert!(!find(&t, &short.id).await.is_good(t.clock.now()));
    assert_eq!(listed(&t, good(Sight::All)).await, std::slice::from_ref(&long.id));
    assert!(t.store.revoke_key(revoke(Sight::All, &long.id)).await.expect("revoke"));
    t.advance(HOUR);
    assert!(!t.store.revoke_key(revoke(Sight::All, &long.id)).await.expect("revoke again"));
    let ended = find(&t, &long.id).await;
    assert_eq!(ended.revoked_at, Some(t.clock.now().minus(HOUR)));
    assert_eq!(listed(&t, good(Sight::All)).await, []);
    assert_eq!(listed(&t, KeyFilter { ended_too: true, ..good(Sight::All) }).await, [short.id, long.id]);
}

/// The old one is good for the overlap and not a moment longer than it would have been.
pub async fn a_key_is_replaced_with_an_overlap(t: Fixture) {
    make_tenant(&t, "acme").await;
    make_tenant(&t, "rival").await;
    let old = make(&t, key(1, Some("acme"))).await;
    let soon_over = make(&t, NewKey { life: Some(Duration::from_secs(60)), ..key(2, Some("acme")) }).await;
    let replacing = |number, old: &KeyId| NewKey { replaces: Some((old.clone(), HOUR)), ..key(number, Some("acme")) };
    make(&t, replacing(3, &old.id)).await;
    assert_eq!(find(&t, &old.id).await.expires_at, Some(t.clock.now().plus(HOUR)));
    make(&t, replacing(4, &soon_over.id)).await;
    assert_eq!(find(&t, &soon_over.id).await.expires_at, soon_over.expires_at);
    let strangers = make(&t, key(5, Some("rival"))).await;
    for unknown in [key(99, None).id, strangers.id.clone()] {
        let refused = t.store.create_key(replacing(6, &unknown)).await;
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    }
    let revoked = make(&t, key(7, Some("acme"))).await;
    t.store.revoke_key(revoke(Sight::All, &revoked.id)).await.expect("revoke");
    let refused = t.store.create_key(replacing(6, &revoked.id)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(t.store.find_key(&key(6, None).id).await.expect("find"), None, "nothing was made");
    assert_eq!(find(&t, &strangers.id).await, strangers);
}

/// A key with an end is replaced by one with the same end, unless another is asked for; one that has ended by none.
pub async fn a_replaced_key_hands_its_end_on(t: Fixture) {
    let replacing = |number, old: &KeyId| NewKey { replaces: Some((old.clone(), HOUR)), ..key(number, None) };
    let old = make(&t, NewKey { life: Some(2 * HOUR), ..key(1, None) }).await;
    let next = make(&t, replacing(2, &old.id)).await;
    assert_eq!(next.expires_at, old.expires_at);
    let longer = make(&t, NewKey { life: Some(9 * HOUR), ..replacing(3, &next.id) }).await;
    assert_eq!(longer.expires_at, Some(t.clock.now().plus(9 * HOUR)), "an end that is asked for is given");
    let endless = make(&t, key(4, None)).await;
    assert_eq!(make(&t, replacing(5, &endless.id)).await.expires_at, None);
    t.advance(9 * HOUR);
    for ended in [&old.id, &longer.id, &endless.id] {
        let refused = t.store.create_key(replacing(6, ended)).await;
        assert!(matches!(&refused, Err(StoreError::Conflict(text)) if text.contains("has ended")), "{refused:?}");
        assert_eq!(t.store.find_key(&key(6, None).id).await.expect("find"), None, "nothing was made");
    }
    // The reply was lost: the same request again finds its key, although the one before it has ended since.
    assert_eq!(make(&t, replacing(2, &old.id)).await, find(&t, &next.id).await);
}

/// Others' keys are not known to a tenant, operators' neither.
pub async fn a_tenant_sees_and_ends_only_its_own_keys(t: Fixture) {
    make_tenant(&t, "acme").await;
    make_tenant(&t, "rival").await;
    let own = make(&t, key(1, Some("acme"))).await.id;
    let theirs = make(&t, key(2, Some("rival"))).await.id;
    let operators = make(&t, key(3, None)).await.id;
    assert_eq!(listed(&t, good(sight("acme"))).await, std::slice::from_ref(&own));
    assert_eq!(listed(&t, good(sight("nobody"))).await, []);
    for hidden in [&theirs, &operators, &key(99, None).id] {
        let refused = t.store.revoke_key(revoke(sight("acme"), hidden)).await;
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    }
    assert!(t.store.revoke_key(revoke(sight("acme"), &own)).await.expect("revoke"));
    assert_eq!(listed(&t, good(Sight::All)).await, [theirs, operators]);
}

/// By id, each once.
pub async fn keys_are_listed_page_by_page(t: Fixture) {
    let mut made = Vec::new();
    for number in 0..7 {
        made.push(make(&t, key(number, None)).await.id);
    }
    made.sort();
    let mut seen: Vec<KeyId> = Vec::new();
    loop {
        let page = listed(&t, KeyFilter { after: seen.last().cloned(), limit: 3, ..good(Sight::All) }).await;
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen, made);
}

/// Each by its name, and nothing is made.
pub async fn what_cannot_be_a_key_is_refused(t: Fixture) {
    make_tenant(&t, "acme").await;
    let worker = Scopes::new([Scope::Worker]).expect("one");
    let bad = [
        ("name", NewKey { name: String::new(), ..key(1, None) }),
        ("name", NewKey { name: "a\0b".into(), ..key(1, None) }),
        ("scopes", NewKey { scopes: worker, ..key(1, Some("acme")) }),
        ("life", NewKey { life: Some(Duration::ZERO), ..key(1, None) }),
        ("life", NewKey { life: Some(Duration::MAX), ..key(1, None) }),
        ("overlap", NewKey { replaces: Some((key(2, None).id, Duration::MAX)), ..key(1, None) }),
        ("reason", NewKey { word: Word { reason: Some("\0".into()), actor: None }, ..key(1, None) }),
    ];
    for (field, new) in bad {
        match t.store.create_key(new).await {
            Err(StoreError::Invalid(invalid)) => assert_eq!(invalid.field, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    let unknown = t.store.create_key(key(1, Some("nobody"))).await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))), "{unknown:?}");
    assert_eq!(t.store.find_key(&key(1, None).id).await.expect("find"), None);
}

/// By somebody or by their first job; with their quota and the keys that are good.
pub async fn tenants_are_made_and_listed(t: Fixture) {
    let name = "zeta";
    assert!(matches!(t.store.show_tenant(&tenant(name)).await, Err(StoreError::NotFound(_))));
    make_tenant(&t, name).await;
    let job = tenure_core::NewJob { tenant: tenant("beta"), ..t.new_job() };
    t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
    let set = |quota| SetTenant { tenant: tenant(name), quota, word: Word::default() };
    assert!(!t.store.set_tenant(set(Some(Quota::Pending(7)))).await.expect("set"), "it was there");
    assert!(!t.store.set_tenant(set(None)).await.expect("set"), "nothing is said");
    make(&t, key(1, Some(name))).await;
    make(&t, NewKey { life: Some(HOUR), ..key(2, Some(name)) }).await;
    let revoked = make(&t, key(3, Some(name))).await.id;
    t.store.revoke_key(revoke(Sight::All, &revoked)).await.expect("revoke");
    let shown = async || t.store.show_tenant(&tenant(name)).await.expect("show");
    assert_eq!(shown().await, TenantRecord { name: tenant(name), quota: Some(7), keys: 2 });
    t.advance(HOUR);
    assert_eq!(shown().await.keys, 1);
    t.store.set_tenant(set(Some(Quota::Unlimited))).await.expect("set");
    assert_eq!(shown().await.quota, None);
    let page = async |after: Option<&str>, limit| {
        let filter = TenantFilter { after: after.map(tenant), limit };
        let found = t.store.list_tenants(&filter).await.expect("list");
        found.into_iter().map(|tenant| tenant.name.to_string()).filter(|name| name != "default").collect::<Vec<_>>()
    };
    assert_eq!(page(None, 100).await, ["beta", "zeta"]);
    assert_eq!(page(Some("default"), 1).await, ["zeta"]);
    let refused = t.store.set_tenant(set(Some(Quota::Pending(0)))).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

/// Who made and ended what, and nothing for what changed nothing.
pub async fn what_happens_to_access_is_written_down(t: Fixture) {
    let word = Word { actor: Some("ops".into()), reason: Some("audit".into()) };
    let set = |quota| SetTenant { tenant: tenant("acme"), quota, word: word.clone() };
    for quota in [None, None, Some(Quota::Pending(1)), Some(Quota::Pending(1))] {
        t.store.set_tenant(set(quota)).await.expect("set");
    }
    let old = make(&t, NewKey { word: word.clone(), ..key(1, Some("acme")) }).await.id;
    let replaces = Some((old.clone(), HOUR));
    make(&t, NewKey { word: word.clone(), replaces, ..key(2, Some("acme")) }).await;
    for _ in 0..2 {
        let request = RevokeKey { word: word.clone(), ..revoke(Sight::All, &old) };
        t.store.revoke_key(request).await.expect("revoke");
    }
    let rows = t.journal().await;
    assert!(rows.iter().all(|row| (&row.actor, &row.reason) == (&word.actor, &word.reason)), "{rows:?}");
    let mut events: Vec<_> = rows.iter().map(|row| row.event.as_str()).collect();
    events[3..5].sort_unstable();
    let wanted = [
        JournalEvent::TenantSet,
        JournalEvent::TenantSet,
        JournalEvent::KeyCreated,
        JournalEvent::KeyCreated,
        JournalEvent::KeyRevoked,
        JournalEvent::KeyRevoked,
    ];
    assert_eq!(events, wanted.map(JournalEvent::as_str));
}

/// Another number, or a worker that does not come over HTTP, has no token.
pub async fn a_remote_worker_is_proven_by_its_token(t: Fixture) {
    let name: WorkerName = "far away".replace(' ', "-").parse().expect("a name");
    let new = NewRemote { name: name.clone(), key: key(1, None).id, token: [3; 32] };
    let remote = t.store.register_remote(new.clone()).await.expect("register");
    let local = t.worker("near").await;
    let wanted = RemoteToken { key: new.key.clone(), token: new.token };
    assert_eq!(t.store.find_remote(remote).await.expect("find"), Some(wanted));
    assert_eq!(t.store.find_remote(local).await.expect("find"), None);
    assert_eq!(t.store.find_remote(WorkerId(local.0 + 7)).await.expect("find"), None);
    let workers = t.store.list_workers(10).await.expect("list");
    let found = workers.iter().find(|worker| worker.id == remote).expect("it is listed");
    assert_eq!((&found.name, found.registered_at), (&name, t.clock.now()));
    t.enqueue().await;
    let (lease, _) = t.claim_one(remote).await;
    assert_eq!(t.store.find_leases(remote, vec![lease]).await.expect("find").len(), 1);
}
