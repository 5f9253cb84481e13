//! A user's first hour: guessed addresses, missing configuration, and hints on what to do next.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use testkit::{PrefillBehaviour, Request, ScriptedModel, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};

const TEXT: &str = "one two three four five six seven eight nine ten";
const UNREACHABLE_URL: &str = "http://127.0.0.1:9/v1";

#[test]
fn commonly_tried_paths_give_helpful_answers() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT)).await;
        let place = TestFolder::new();
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        let page = Request::get(served.address, "/").send().await.read().await;
        assert_eq!((page.status, page.header("location")), (307, Some("/endmark/")));
        for (path, hint) in [("/health", "/endmark/readyz"), ("/metrics", "/endmark/metrics")] {
            let reply = Request::get(served.address, path).send().await.read().await;
            assert_eq!(reply.status, 404);
            assert!(reply.text().contains(hint), "{}", reply.text());
        }
        assert!(upstream.requests().is_empty());
        // Such paths are forwarded if the client names an upstream.
        Request::get(served.address, "/u/default/health").send().await.read().await;
        assert_eq!(upstream.requests().len(), 1);
    });
}

#[test]
fn a_wildcard_gateway_prints_a_usable_address() {
    let place = TestFolder::new();
    let mut served = ServeProcess::start(&place, &["--listen", "0.0.0.0:0", "--upstream", UNREACHABLE_URL]);
    assert!(served.address.ip().is_loopback(), "{}", served.address);
    served.wait_for_line("Other machines reach it at http://");
    let pages = served.wait_for_line("List them with");
    assert!(!pages.contains("/endmark/"), "the pages are disabled there: {pages}");
    served.wait_for_line("the pages are disabled");
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream
        .write_all(b"GET /endmark/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let shown = place.run(&["config", "--set", "listen=0.0.0.0", "--json"]).envelope();
    assert!(shown.to_string().contains("0.0.0.0:4141"), "{shown}");
}

#[test]
fn a_keyed_gateway_warns_of_an_upstream_without_a_key() {
    let text = "require_key = true\nadmin_key = \"a-long-admin-key-0123456789abcdef\"\n\
        [upstreams.far]\nbase_url = \"https://far.invalid/v1\"\n";
    let place = TestFolder::new().with_file("endmark.toml", text);
    let mut served = ServeProcess::start(&place, &[]);
    let printed = served.wait_for_line("has no key");
    assert!(printed.contains("`far`") && printed.contains("[upstreams.far] api_key"), "{printed}");
    let doctor = place.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.output.contains("require_key: "), "{}", doctor.output);
}

#[test]
fn a_new_key_is_printed_with_the_address_and_unusable_upstreams() {
    let add = |text: &str| {
        let place = TestFolder::new().with_file("endmark.toml", text);
        let added = place.run(&["keys", "add", "alice"]);
        assert!(added.code == 0 && added.output.starts_with("em_sk_"), "{}", added.errors);
        added.errors
    };
    let far = "listen = \"127.0.0.1:5151\"\n[upstreams.far]\nbase_url = \"https://far.invalid/v1\"\n";
    let printed = add(far);
    assert!(printed.contains("OPENAI_BASE_URL=http://127.0.0.1:5151/v1 "), "{printed}");
    assert!(
        printed.contains("`far` has no key, so this key gets 403 there")
            && printed.contains("[upstreams.far] api_key"),
        "{printed}"
    );
    let printed = add(&format!("{far}api_key = \"its-own\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n"));
    assert!(
        printed.contains("OPENAI_BASE_URL=https://127.0.0.1:5151/v1 ") && !printed.contains("403"),
        "{printed}"
    );
}

#[test]
fn config_check_reports_errors_that_would_prevent_the_start() {
    let place = TestFolder::new().with_file("endmark.toml", "admin_key = \"short\"\n");
    let check = place.run(&["config", "check"]);
    assert!(
        check.code == 1 && check.output.contains("`admin_key` has fewer than 16 characters"),
        "{}",
        check.output
    );
    assert_eq!(place.run(&["serve"]).code, 2);
    // A missing API key is reported only once.
    let text = "[upstreams.far]\nbase_url = \"https://far.invalid/v1\"\napi_key = { env = \"NOT_SET\" }\n";
    let place = TestFolder::new().with_file("endmark.toml", text);
    let check = place.run(&["config", "check"]);
    assert_eq!(check.output.matches("FAIL").count(), 1, "{}", check.output);
    assert!(check.output.contains("`NOT_SET` is not set"), "{}", check.output);
}

#[test]
fn doctor_distinguishes_its_gateway_from_another_program() {
    let place = TestFolder::new();
    let served = ServeProcess::start(&place, &["--upstream", UNREACHABLE_URL]);
    let listen = format!("listen={}", served.address);
    let found = place.run(&["doctor", "--set", &listen]).output;
    assert!(found.contains(&format!("listen: `endmark serve` listens on {}", served.address)), "{found}");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    drop(served);
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 64]).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap();
        // Keep the socket open, so that its port is in use during the check.
        other
    });
    let found = place.run(&["doctor", "--set", &format!("listen={address}")]);
    drop(answering.join().unwrap());
    assert!(found.output.contains("cannot listen on"), "{}", found.output);
}

#[test]
fn doctor_accepts_an_upstream_instead_of_the_configured_ones() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT)).await;
        let text = format!("[upstreams.gone]\nbase_url = \"{UNREACHABLE_URL}\"\n");
        let place = TestFolder::new().with_file("endmark.toml", text);
        let run = place.run(&["doctor", "--upstream", &upstream.base_url()]);
        assert_eq!(run.code, 0, "{}", run.output);
        assert!(run.output.contains(&upstream.base_url()) && !run.output.contains("gone"), "{}", run.output);
    });
}

#[test]
fn an_unresolvable_name_is_reported_as_a_dns_failure() {
    let place = TestFolder::new().with_file("cut.json", "[1, 2");
    let far = "http://no-such-host.invalid/v1";
    let run = place.run(&["resume", "cut.json", "--base-url", far, "--model", "m"]);
    assert!(run.code == 3 && run.errors.contains("DNS failed"), "{}", run.errors);
    let doctor = place.run(&["doctor", "--upstream", far]);
    assert!(doctor.code == 1 && doctor.output.contains("DNS failed"), "{}", doctor.output);
}

#[test]
fn an_initial_configuration_is_valid_and_never_overwritten() {
    let place = TestFolder::new();
    let written = place.run(&["init"]);
    assert_eq!(written.code, 0, "{}", written.errors);
    assert_eq!(place.run(&["config", "check"]).code, 0);
    let text = std::fs::read_to_string(place.path().join("endmark.toml")).unwrap();
    // The lines in comments must be valid, too.
    let keys = text.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| line.contains(" = "));
    assert!(keys.count() >= 6, "{text}");
    let again = place.run(&["init"]);
    assert!(again.code == 2 && again.errors.contains("already exists"), "{}", again.errors);
    assert_eq!(std::fs::read_to_string(place.path().join("endmark.toml")).unwrap(), text);
}

#[test]
fn a_new_key_is_printed_once_and_alone_on_standard_output() {
    let run = TestFolder::new().run(&["keys", "add", "alice", "--budget-usd", "20", "--per", "month"]);
    assert!(run.output.starts_with("em_sk_") && run.output.lines().count() == 1, "{}", run.output);
    assert!(run.errors.contains("shown only once"), "{}", run.errors);
    assert!(run.errors.contains("OPENAI_BASE_URL=http://127.0.0.1:4141/v1"), "{}", run.errors);
}

#[test]
fn money_is_rounded_for_people_and_exact_for_programs() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT)).await;
        let place = TestFolder::new().with_file("endmark.toml", "[budget]\nsession_usd = 2.5\n");
        let served = ServeProcess::start(&place, &["--upstream", &upstream.base_url()]);
        let body = json!({"model": "gpt-5", "messages": [{"role": "user", "content": "Count."}]});
        let request = Request::post(served.address, "/v1/chat/completions");
        assert_eq!(request.json(&body).send().await.read().await.status, 200);
        served.stop("-TERM");
        let budget = place.run(&["budget"]).output;
        assert!(budget.contains("$2.50") && !budget.contains("000000"), "{budget}");
        for command in ["usage", "budget"] {
            let longest = |text: &str| {
                let digits = |word: &str| {
                    word.chars().filter(char::is_ascii_digit).skip_while(|digit| *digit == '0').count()
                };
                text.split_whitespace()
                    .filter(|word| word.contains('.'))
                    .map(digits)
                    .max()
                    .unwrap_or_default()
            };
            let printed = place.run(&[command]).output;
            let table = printed.lines().take(3).collect::<Vec<_>>().join("\n");
            assert!(longest(&table) <= 4, "{printed}");
        }
        let usd = place.run(&["usage", "--json"]).envelope()["data"]["total"]["usd"].clone();
        assert_eq!(usd.as_str().unwrap().split_once('.').unwrap().1.len(), 9, "{usd}");
    });
}

#[test]
fn an_empty_text_is_reported_in_one_line() {
    let run = TestFolder::new().run(&["detect"]);
    assert_eq!((run.code, run.output.as_str()), (1, "truncated: the text is empty\n"));
}

#[test]
fn help_contains_no_requirement_ids_and_the_overview_has_groups() {
    let place = TestFolder::new();
    let all = place.run(&["--help"]).output;
    for group in ["Everyday (docs/", "Inside agents (docs/", "Operate (docs/", "Build on it (docs/"] {
        assert!(all.contains(group), "{group} in {all}");
    }
    let commands = all.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let commands: Vec<&str> =
        commands.filter(|word| word.chars().all(|letter| letter.is_ascii_lowercase())).collect();
    assert!(commands.contains(&"serve") && commands.contains(&"exec"), "{commands:?}");
    let id = regex::Regex::new(r"\b[A-Z]{2}-[0-9]").unwrap();
    for command in commands.iter().filter(|command| !["help", "endmark", "make"].contains(command)) {
        let help = place.run(&[command, "--help"]).output;
        assert!(id.find(&help).is_none(), "{help}");
    }
}

#[test]
fn the_log_has_one_line_per_unusual_request_or_error() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(TEXT).prefill(PrefillBehaviour::Echoes)).await;
        let gone = "[upstreams.gone]\nbase_url = \"http://127.0.0.1:9/v1\"\n";
        let there = format!("{gone}[upstreams.there]\nbase_url = \"{}\"\n", upstream.base_url());
        let place = TestFolder::new().with_file("endmark.toml", there);
        let served = ServeProcess::start(&place, &[]);
        let ask = async |upstream: &str, max_tokens: u32| {
            let body = json!({"model": "m", "max_tokens": max_tokens, "messages": [{"role": "user", "content": "Count."}]});
            let path = format!("/u/{upstream}/v1/chat/completions");
            let request = Request::post(served.address, &path).header("x-endmark-resume", "on");
            request.json(&body).send().await.read().await
        };
        let resumed = ask("there", 3).await.header("x-endmark-request").unwrap().to_owned();
        ask("there", 500).await;
        for _ in 0..3 {
            ask("gone", 500).await;
        }
        let (_, printed) = served.stop("-TERM");
        let lines: Vec<&str> = printed.lines().filter(|line| line.contains(" UTC  ")).collect();
        assert_eq!(lines.len(), 3, "{printed}");
        assert!(
            lines[0].contains("resumed    m at there, 2 calls, ") && lines[0].ends_with(&resumed),
            "{printed}"
        );
        assert!(lines[1].contains("error      the upstream `gone` at "), "{printed}");
        assert!(lines[2].ends_with("repeated once since the line above"), "{printed}");
    });
}
