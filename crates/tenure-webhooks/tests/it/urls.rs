//! URLs that must not be called, and URLs that must.

use tenure_webhooks::{Guard, GuardOptions, Refused, SendError};

use crate::canary::Canary;
use crate::receiver::{AMPLE, SHORT, Told, call, sender};

/// `{p}` is the canary's port, which may be called: what refuses these is not the port.
const HOSTILE: &[&str] = &[
    // Loopback, as people write it and as machines read it.
    "http://127.0.0.1:{p}/",
    "http://127.0.0.1.:{p}/",
    "http://127.1:{p}/",
    "http://127.0.1:{p}/",
    "http://127.127.127.127:{p}/",
    "http://2130706433:{p}/",
    "http://017700000001:{p}/",
    "http://0177.0.0.1:{p}/",
    "http://0177.0.0.01:{p}/",
    "http://0x7f000001:{p}/",
    "http://0x7f.0.0.1:{p}/",
    "http://0x7F.0x0.0x0.0x1:{p}/",
    "http://0x7f.1:{p}/",
    "http://127.0x1:{p}/",
    "http://%31%32%37.0.0.1:{p}/",
    "http://127%2e0%2e0%2e1:{p}/",
    "http://１２７.０.０.１:{p}/",
    "http://①②⑦.⓪.⓪.①:{p}/",
    "http://127。0。0。1:{p}/",
    "http://0:{p}/",
    "http://0.0.0.0:{p}/",
    "http://00:{p}/",
    "http://0x0:{p}/",
    "http://[::]:{p}/",
    "http://[::1]:{p}/",
    "http://[0:0:0:0:0:0:0:1]:{p}/",
    "http://[0000::0001]:{p}/",
    "http://[::127.0.0.1]:{p}/",
    "http://[::ffff:127.0.0.1]:{p}/",
    "http://[::ffff:7f00:1]:{p}/",
    "http://[0:0:0:0:0:ffff:7f00:0001]:{p}/",
    "http://[::ffff:0:127.0.0.1]:{p}/",
    // The inside of networks, and what translates to it.
    "http://10.0.0.1:{p}/",
    "http://172.16.0.1:{p}/",
    "http://172.31.255.255:{p}/",
    "http://192.168.1.1:{p}/",
    "http://100.100.100.200:{p}/",
    "http://169.254.169.254:{p}/latest/meta-data/",
    "http://2852039166:{p}/",
    "http://0xa9fea9fe:{p}/",
    "http://0251.0376.0251.0376:{p}/",
    "http://168.63.129.16:{p}/",
    "http://192.0.0.192:{p}/",
    "http://198.18.0.1:{p}/",
    "http://224.0.0.1:{p}/",
    "http://255.255.255.255:{p}/",
    "http://[fd00:ec2::254]:{p}/",
    "http://[fe80::1]:{p}/",
    "http://[fec0::1]:{p}/",
    "http://[ff02::1]:{p}/",
    "http://[64:ff9b::a9fe:a9fe]:{p}/",
    "http://[64:ff9b::169.254.169.254]:{p}/",
    "http://[64:ff9b:1::a9fe:a9fe]:{p}/",
    "http://[2002:7f00:1::]:{p}/",
    "http://[2002:a9fe:a9fe::]:{p}/",
    "http://[2001:0:7f00:1::]:{p}/",
    "http://[2001:db8::1]:{p}/",
    "http://[100::1]:{p}/",
    "http://[3fff::1]:{p}/",
    // Names of the inside.
    "http://localhost:{p}/",
    "http://LOCALHOST:{p}/",
    "http://localhost.:{p}/",
    "http://ｌｏｃａｌｈｏｓｔ:{p}/",
    "http://foo.localhost:{p}/",
    "http://metadata:{p}/",
    "http://metadata.google.internal:{p}/",
    "http://printer.local:{p}/",
    "http://router.home.arpa:{p}/",
    // Names that are written in two ways.
    "http://spoofed.example.:{p}/",
    "http://spoofed..example:{p}/",
    "http://.spoofed.example:{p}/",
    // Who is the host?
    "http://hook.example@127.0.0.1:{p}/",
    "http://hook.example:80@127.0.0.1:{p}/",
    "http://hook.example%40127.0.0.1:{p}/",
    "http://@127.0.0.1:{p}/",
    "http://:@hook.example:{p}/",
    "http://user@hook.example:{p}/",
    "http://user:pass@hook.example:{p}/",
    "http://127.0.0.1:{p}\\@hook.example/",
    "http://hook.example\\@127.0.0.1:{p}/",
    "http:\\\\127.0.0.1:{p}\\",
    "http:/\\127.0.0.1:{p}/",
    "http://hook.example:{p}/a\\b",
    "http://hook.example#@127.0.0.1:{p}/",
    "http://127.0.0.1:{p}#.hook.example/",
    "http://hook.example/#fragment",
    "http://hook.example/#",
    "http:127.0.0.1:{p}/",
    "http:/127.0.0.1:{p}/",
    "http:///127.0.0.1:{p}/",
    "//127.0.0.1:{p}/",
    "127.0.0.1:{p}",
    "",
    "http://",
    "http://:{p}/",
    "http://[::1",
    "http://[::1%25lo]:{p}/",
    "http://[v1.x]:{p}/",
    "http://256.256.256.256:{p}/",
    "http://1.2.3.4.5:{p}/",
    // What some parsers remove.
    "http://127.0.0.1\t:{p}/",
    "http://127.0.\n0.1:{p}/",
    "h\nttp://hook.example:{p}/",
    " http://hook.example:{p}/",
    "http://hook.example:{p}/ ",
    "http://hook.example:{p}/a b",
    "http://hook.example:{p}/\r\nHost: 127.0.0.1",
    "http://hook.example:{p}/\0",
    "http://hook.example\u{2028}:{p}/",
    // Other schemes and ports.
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "ftp://hook.example/",
    "gopher://127.0.0.1:{p}/_x",
    "ws://127.0.0.1:{p}/",
    "wss://hook.example/",
    "unix:///var/run/docker.sock",
    "data:text/plain,x",
    "javascript:alert(1)",
    "jar:http://127.0.0.1:{p}!/",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "http://hook.example:22/",
    "http://hook.example:0/",
    "http://hook.example:6379/",
    "http://hook.example:65536/",
    "http://hook.example:-1/",
    "http://hook.example:8o/",
];

/// Nothing is wrong with these but what they resolve to.
const LYING: &[&str] = &[
    "http://127.0.0.1.hook.example:{p}/",
    "http://spoofed.example:{p}/",
    "https://spoofed.example:{p}/",
    "http://xn--bcher-kva.example:{p}/",
    "http://localhost.hook.example:{p}/",
];

#[tokio::test]
async fn no_hostile_url_is_connected_to_in_a_hundred_rounds() {
    let mut canary = Canary::everywhere().await;
    let sender = sender(canary.port(), &[], Told::loopback(), AMPLE);
    const { assert!(HOSTILE.len() >= 60) };
    let long = format!("http://hook.example/{}", "x".repeat(2_048));
    let longer_when_escaped = format!("http://hook.example/{}", "ü".repeat(1_000));
    let shorter_when_read = format!("http://hook.example/{}", "a/../".repeat(500));
    let lengths = [long.as_str(), &longer_when_escaped, &shorter_when_read];
    for round in 0..100 {
        for url in HOSTILE.iter().copied().chain(lengths) {
            let url = url.replace("{p}", &canary.port().to_string());
            assert!(sender.guard().check_url(&url).is_err(), "{url:?} passes");
            let result = call(&sender, &url).await;
            assert!(matches!(result, Err(SendError::Refused { .. })), "{url:?} in round {round}: {result:?}");
        }
        for url in LYING {
            let result = call(&sender, &url.replace("{p}", &canary.port().to_string())).await;
            let refused = matches!(result, Err(SendError::Refused { why: Refused::Address { .. }, .. }));
            assert!(refused, "{url:?} in round {round}: {result:?}");
        }
    }
    assert_eq!(canary.heard().await, (0, 0));
}

#[tokio::test]
async fn the_same_canary_hears_what_is_allowed() {
    let mut canary = Canary::everywhere().await;
    let sender = sender(canary.port(), &["127.0.0.0/8"], Told::loopback(), SHORT);
    for url in ["http://127.1:{p}/", "http://localhost:{p}/", "http://[::ffff:7f00:1]:{p}/"] {
        let answer = call(&sender, &url.replace("{p}", &canary.port().to_string())).await;
        assert!(matches!(answer, Err(SendError::TimedOut { .. })), "{answer:?}");
    }
    let (connects, bytes) = canary.heard().await;
    assert_eq!(connects, 3);
    assert!(bytes > 300, "three requests");
}

#[test]
fn good_urls_pass() {
    let guard = Guard::default();
    for (url, called) in [
        ("https://hook.example", "https://hook.example/"),
        ("https://hook.example/", "https://hook.example/"),
        ("HTTPS://Hook.Example/Path", "https://hook.example/Path"),
        ("https://hook.example:443/a", "https://hook.example/a"),
        ("https://hook.example:80/a", "https://hook.example:80/a"),
        ("https://hook.example/a@b?c=d@e", "https://hook.example/a@b?c=d@e"),
        ("https://hook.example/?q=a%20b&r=%5C", "https://hook.example/?q=a%20b&r=%5C"),
        ("https://hook.example/a/../b", "https://hook.example/b"),
        ("https://hook.example/ünï", "https://hook.example/%C3%BCn%C3%AF"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://a.b-c.d_e.hook.example/", "https://a.b-c.d_e.hook.example/"),
        ("https://localhost.hook.example/", "https://localhost.hook.example/"),
        ("https://internal.hook.example/", "https://internal.hook.example/"),
        ("https://93.184.215.14/", "https://93.184.215.14/"),
        ("https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/", "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/"),
        ("https://[::ffff:93.184.215.14]/", "https://[::ffff:5db8:d70e]/"),
        ("https://hook.example/{a}|b^[c]\"<>`", "https://hook.example/%7Ba%7D|b^[c]%22%3C%3E%60"),
    ] {
        let target = guard.check_url(url).unwrap_or_else(|refused| panic!("{url}: {refused}"));
        assert_eq!(target.url(), called);
    }
}

#[test]
fn http_is_called_in_development_only() {
    let refused = Guard::default().check_url("http://hook.example/").unwrap_err();
    assert_eq!(refused.to_string(), "url scheme `http` is refused: endpoints are called by https://");
    let development = Guard::new(GuardOptions { https_only: false, ..GuardOptions::default() });
    assert!(development.check_url("http://hook.example/").is_ok());
}
