//! Names that a browser can be made to use, and the gateway's own names.

use super::*;

fn rules(is_loopback: bool, hosts: &[&str], origins: &[&str]) -> AccessRules {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    AccessRules::new(is_loopback, &owned(hosts), &owned(origins)).unwrap()
}

fn admits(visitors: &AccessRules, host: &str, origin: Option<&str>) -> bool {
    let origins: Vec<&[u8]> = origin.into_iter().map(str::as_bytes).collect();
    visitors.admit(SenderHeaders { host: Some(host.as_bytes()), origins: &origins, sites: &[] }).is_ok()
}

#[test]
fn a_loopback_listener_accepts_local_and_configured_names() {
    let ours = rules(true, &["Gateway.example.com", "10.0.0.7"], &[]);
    for host in [
        "localhost",
        "LOCALHOST:4141",
        "app.localhost",
        "127.0.0.1:4141",
        "127.9.9.9",
        "[::1]:80",
        "[::ffff:127.0.0.1]",
        "localhost.",
        "gateway.example.com:443",
        "gateway.example.com.",
        "10.0.0.7:1",
    ] {
        assert!(admits(&ours, host, None), "{host}");
    }
    for host in [
        "",
        "example.com",
        "localhost.example.com",
        "notlocalhost",
        "127.0.0.1.example.com",
        "2130706433",
        "[::2]",
        "[::1",
        "::1",
        "localhost:80:80",
        "localhost:x",
        "localhost@example.com",
        "local host",
        "10.0.0.8",
        "\u{ff4c}ocalhost",
    ] {
        assert!(!admits(&ours, host, None), "{host}");
    }
    assert!(ours.admit(SenderHeaders::default()).is_ok());
    assert!(ours.admit(SenderHeaders { host: Some(b"\xff"), ..SenderHeaders::default() }).is_err());
}

#[test]
fn another_listener_accepts_every_name_unless_configured() {
    assert!(admits(&rules(false, &[], &[]), "anything.example", None));
    assert!(!admits(&rules(false, &["a.example"], &[]), "anything.example", None));
    assert!(admits(&rules(true, &["*"], &[]), "anything.example", None));
}

#[test]
fn only_own_and_configured_origins_are_accepted() {
    let ours = rules(true, &["gw.example"], &["https://app.example", "http://localhost:3000"]);
    for (host, origin) in [
        ("localhost:4141", "http://localhost:4141"),
        ("gw.example", "https://gw.example"),
        ("localhost:4141", "https://APP.example"),
        ("localhost:4141", "http://localhost:3000"),
    ] {
        assert!(admits(&ours, host, Some(origin)), "{origin}");
    }
    for origin in [
        "null",
        "",
        "http://localhost:3001",
        "https://app.example:8443",
        "http://app.example",
        "https://app.example.org",
        "file://",
        "https://app.example/",
    ] {
        assert!(!admits(&ours, "localhost:4141", Some(origin)), "{origin}");
    }
    assert!(admits(&rules(true, &[], &["*"]), "localhost", Some("null")));
}

#[test]
fn a_rebound_dns_name_is_a_foreign_origin() {
    let open = rules(false, &[], &[]);
    assert!(!admits(&open, "rebound.example:4141", Some("http://rebound.example:4141")));
    assert!(admits(&open, "192.0.2.1:4141", Some("http://192.0.2.1:4141")));
}

#[test]
fn an_invalid_name_in_a_list_is_rejected() {
    let host = AccessRules::new(true, &["https://gw.example".to_owned()], &[]).unwrap_err();
    assert!(host.to_string().contains("without a scheme"), "{host}");
    assert!(AccessRules::new(true, &[], &["app.example".to_owned()]).is_err());
}

#[test]
fn every_one_of_several_origins_must_be_allowed() {
    let ours = rules(true, &[], &["https://app.example"]);
    let admit =
        |origins: &[&[u8]]| ours.admit(SenderHeaders { host: Some(b"localhost"), origins, sites: &[] });
    assert_eq!(admit(&[b"https://app.example", b"http://localhost"]), Ok(()));
    for origins in [
        [&b"https://app.example"[..], b"https://evil.example"],
        [b"https://evil.example", b"https://app.example"],
    ] {
        assert_eq!(admit(&origins), Err(AccessError::Origin("https://evil.example".to_owned())));
    }
}

#[test]
fn a_cross_site_page_is_foreign_even_without_an_origin() {
    let ours = rules(true, &[], &["https://app.example"]);
    let admit = |visitors: &AccessRules, origins: &[&[u8]], sites: &[&[u8]]| {
        visitors.admit(SenderHeaders { host: Some(b"localhost:4141"), origins, sites })
    };
    for site in [&b"none"[..], b"same-origin"] {
        assert_eq!(admit(&ours, &[], &[site]), Ok(()));
    }
    for site in ["cross-site", "same-site", "", "same-origin, cross-site"] {
        assert_eq!(admit(&ours, &[], &[site.as_bytes()]), Err(AccessError::Site(site.to_owned())));
    }
    assert!(admit(&ours, &[], &[b"none", b"cross-site"]).is_err());
    // The origin decides if a request has one.
    assert_eq!(admit(&ours, &[b"https://app.example"], &[b"cross-site"]), Ok(()));
    assert_eq!(admit(&rules(true, &[], &["*"]), &[], &[b"cross-site"]), Ok(()));
}
