//! `run --through`: the agent's calls go through the run's own gateway, which counts them and enforces the
//! budget.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;

use endmark_store::{Reader, StoreLocation};
use serde_json::Value;
use testkit::{PrefillBehaviour, ScriptedModel, Upstream};

use crate::agent_run::agent_folder;
use crate::run::{CommandOutput, TestFolder};
use crate::serve::in_runtime;

const REPORT_TEXT: &str = "All is well. The harbour was quiet, and the tide was high at noon.";
/// Requests its report with an output limit that is too low, and leaves a stub at its first attempt.
const AGENT_SCRIPT: &str = r#"asked='{"model": "gpt-4o", "max_tokens": 4, "messages": [{"role": "user", "content": "Report."}]}'
printf '%s' "$OPENAI_API_KEY" > key
curl -s "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' -d "$asked" > answer
if [ "$ENDMARK_ATTEMPT" = 1 ] || ! grep -q choices answer; then text=TBD; else text=$(sed 's/.*"content": *"\([^"]*\)".*/\1/' answer); fi
printf '# Report\n\n## Summary\n\n%s\n' "$text" > report.md
"#;

fn run(place: &TestFolder, options: &[&str]) -> CommandOutput {
    let mut arguments =
        vec!["run", "--through", "--json", "--template", "criteria.yaml", "--artifact", "report.md"];
    arguments.extend(options);
    arguments.extend(["--", "./agent.sh"]);
    place.run(&arguments)
}

#[test]
fn calls_of_a_run_use_its_key_and_are_recovered_and_counted() {
    in_runtime(async {
        let upstream =
            Upstream::start(ScriptedModel::new(REPORT_TEXT).prefill(PrefillBehaviour::Continues)).await;
        let place = agent_folder("agent.sh", AGENT_SCRIPT)
            .with_file("endmark.toml", "[resume]\nmode = \"on\"\n")
            .with_variable("OPENAI_API_KEY", "sk-real")
            .with_variable("OPENAI_BASE_URL", &upstream.base_url());
        let ran = run(&place, &[]);
        let envelope = ran.envelope();
        let agent_run = &envelope["data"]["agentRun"];
        assert_eq!((ran.code, &agent_run["attempt"]), (0, &2.into()), "{envelope}");
        // The reply was cut after four tokens, but the agent received the complete reply.
        let report = fs::read_to_string(place.path().join("report.md")).unwrap();
        assert!(report.contains(REPORT_TEXT), "{report}");
        let key = fs::read_to_string(place.path().join("key")).unwrap();
        assert!(key.starts_with("em_sk_"), "the agent has the provider's key");
        let requests = upstream.requests();
        assert!(requests.len() > 2, "{} calls", requests.len());
        assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer sk-real")));
        // The run's usage equals the ledger's sum for its key, including continuations.
        let usage = place.run(&["usage", "--by", "key", "--json"]).envelope();
        let row = &usage["data"]["rows"][0];
        assert_eq!(row["key"], format!("key:{}", agent_run["id"].as_str().unwrap()));
        let number = |value: &Value| value.as_u64().unwrap();
        let total = number(&row["prompt_tokens"]) + number(&row["completion_tokens"]);
        assert!(total > 0 && row["estimated_calls"] == 0, "{row}");
        assert_eq!(agent_run["tokenUsage"]["total"], total);
        assert_eq!((&agent_run["model"], &agent_run["costUsd"]), (&"gpt-4o".into(), &row["usd"]));
        assert!(
            agent_run["limitTokens"].is_u64() && agent_run["largestCallTokens"].as_u64().unwrap() < total
        );
        let usage = place.run(&["usage", "--by", "session", "--json"]).envelope();
        let session = usage["data"]["rows"][0]["session"].as_str().unwrap();
        let runs = Reader::open(&StoreLocation::sqlite(place.path().join("endmark.db")))
            .unwrap()
            .session_runs(session, 9)
            .unwrap();
        assert_eq!(agent_run["id"], runs[0].run.id, "its session knows the run");
        let store = fs::read(place.path().join("endmark.db")).unwrap();
        assert!(!store.windows(key.len()).any(|part| part == key.as_bytes()), "the run's key is kept");
    });
}

#[test]
fn a_budget_is_held_before_each_call() {
    in_runtime(async {
        let upstream =
            Upstream::start(ScriptedModel::new(REPORT_TEXT).prefill(PrefillBehaviour::Continues)).await;
        let place = agent_folder("agent.sh", AGENT_SCRIPT)
            .with_variable("OPENAI_API_KEY", "sk-real")
            .with_variable("OPENAI_BASE_URL", &upstream.base_url());
        let ran = run(&place, &["--max-usd", "0.000000001", "--max-attempts", "2"]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        assert!(upstream.requests().is_empty());
        let answer = fs::read_to_string(place.path().join("answer")).unwrap();
        assert!(answer.contains("endmark_budget"), "{answer}");
        // No attempt starts without enough budget, and the run ends for that reason.
        let envelope = ran.envelope();
        let agent_run = &envelope["data"]["agentRun"];
        assert_eq!(
            (&agent_run["attempt"], &agent_run["reason"]),
            (&1.into(), &"BUDGET".into()),
            "{envelope}"
        );
        assert!(!ran.output.contains("no call of the agent used the gateway"), "{}", ran.output);
    });
}

#[test]
fn without_a_provider_key_nothing_is_started() {
    let place = agent_folder("agent.sh", "touch started\n");
    let ran = run(&place, &[]);
    assert_eq!((ran.code, ran.envelope()["error"]["code"].as_str()), (2, Some("missing_key")));
    assert!(!place.path().join("started").exists());
}

/// A user other than root, whose processes can be protected from reading each other's memory.
const NOBODY_USER_ID: u32 = 65_534;
/// Prints a model's reply in the format of Claude Code.
const CLAUDE_FUNCTIONS: &str = r#"reply() { echo '{"type":"assistant","message":{"id":"'$1'","model":"m","usage":{"input_tokens":9,"output_tokens":1},"content":[{"type":"text","text":"Done."}]}}'; }
result() { echo '{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","result":"Done.","session_id":"s"}'; }
call() { curl -s "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -d '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Report."}]}' > answer; }
printf '# Report\n\n## Summary\n\nAll is well. The harbour was quiet.\n' > report.md
"#;

fn claude_folder(upstream: &Upstream, script: &str) -> TestFolder {
    agent_folder("claude", &format!("{CLAUDE_FUNCTIONS}{script}"))
        .with_variable("OPENAI_API_KEY", "sk-real-key-of-openai")
        .with_variable("OPENAI_BASE_URL", &upstream.base_url())
        .with_variable("ANTHROPIC_API_KEY", "sk-real-key-of-anthropic")
}

fn run_claude(place: &TestFolder, words: &[&str]) -> CommandOutput {
    let mut arguments = vec!["run", "--through", "--json", "--template", "criteria.yaml"];
    arguments.extend(["--artifact", "report.md", "--", "./claude", "--output-format", "stream-json"]);
    arguments.extend(words);
    place.run(&arguments)
}

#[test]
fn an_agent_that_bypasses_the_gateway_is_stopped() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(REPORT_TEXT)).await;
        for (script, is_stopped) in [
            ("call; reply a; reply a; call; reply b; result", false),
            // A message that the agent created itself is not a model's reply.
            (
                r#"echo '{"type":"assistant","message":{"id":"x","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0},"content":[]}}'; call; reply a; result"#,
                false,
            ),
            ("reply a; sleep 60; touch went-on; result", true),
            ("call; reply a; reply b; sleep 60; touch went-on; result", true),
            // A server may report no usage.
            ("reply a | sed 's/[91],/0,/; s/:1}/:0}/'; sleep 60; touch went-on; result", true),
            // The last line has no newline.
            (r#"printf %s "$(reply a)""#, true),
        ] {
            let place = claude_folder(&upstream, script);
            let ran = run_claude(&place, &[]);
            let envelope = ran.envelope();
            let agent_run = &envelope["data"]["agentRun"];
            let found = (ran.code, &agent_run["reason"], &agent_run["verdict"], &agent_run["attempt"]);
            let expected = if is_stopped {
                (3, &"GATEWAY_BYPASSED".into(), &"bypassed".into(), &1.into())
            } else {
                (0, &Value::Null, &"whole".into(), &1.into())
            };
            assert_eq!(found, expected, "{script}: {envelope}");
            assert!(!place.path().join("went-on").exists(), "{script}");
            assert_eq!(ran.output.contains("bypassed the run's gateway"), is_stopped, "{envelope}");
        }
    });
}

#[test]
fn settings_that_bypass_the_gateway_are_overridden() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(REPORT_TEXT)).await;
        let elsewhere =
            r#"{"model": "m", "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "KEPT": "1"}} // mine"#;
        let script = r#"printf '%s\n' "$@" > words; for word; do file=$word; test "$before" = --settings && cp "$file" settings; before=$word; done; stat -c %a "$file" > mode; call; reply a; result"#;
        let script = script
            .replace("stat -c %a \"$file\"", "for f in $(grep endmark-run words); do stat -c %a $f; done");
        for own in [
            vec![],
            vec!["--settings", "own.json"],
            vec!["--settings={\"model\": \"m\", \"env\": {\"KEPT\": \"1\"}}"],
        ] {
            let place = claude_folder(&upstream, &script).with_file("own.json", elsewhere);
            let ran = run_claude(&place, &own);
            assert_eq!(ran.code, 0, "{}", ran.output);
            let settings: Value =
                serde_json::from_slice(&fs::read(place.path().join("settings")).unwrap()).unwrap();
            let address = settings["env"]["ANTHROPIC_BASE_URL"].as_str().unwrap();
            assert!(
                address.starts_with("http://127.0.0.1:") && address != "http://127.0.0.1:9",
                "{settings}"
            );
            assert!(settings["env"]["ANTHROPIC_API_KEY"].as_str().unwrap().starts_with("em_sk_"));
            if !own.is_empty() {
                assert_eq!((&settings["model"], &settings["env"]["KEPT"]), (&"m".into(), &"1".into()));
            }
            assert_eq!(fs::read_to_string(place.path().join("mode")).unwrap().trim(), "600");
            let words = fs::read_to_string(place.path().join("words")).unwrap();
            let file = words.lines().find(|word| word.contains("endmark-run-")).unwrap();
            assert!(!std::path::Path::new(file).exists(), "{file} is left behind");
        }
        let place = claude_folder(&upstream, "touch started").with_file("own.json", "[1]");
        let ran = run_claude(&place, &["--settings", "own.json"]);
        assert_eq!((ran.code, ran.envelope()["error"]["code"].as_str()), (2, Some("unfit_file")));
        assert!(!place.path().join("started").exists());
    });
}

#[test]
fn an_agent_sees_no_other_key_and_no_web_page() {
    in_runtime(async {
        let upstream = Upstream::start(ScriptedModel::new(REPORT_TEXT)).await;
        let script = r#"endmark=$(readlink /proc/$PPID/exe || echo "$ENDMARK")
origin=${OPENAI_BASE_URL%/v1}
ask() { curl -s -o answer -w '%{http_code}\n' "$@"; }
"$ENDMARK" keys add mine > added 2>&1
added=$(grep -o 'em_sk_[0-9a-f]*' added)
test -n "$added" && echo made > made
ask "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $added" -d '{"model": "gpt-4o", "messages": []}' > codes
ask "$OPENAI_BASE_URL/chat/completions" -d '{"model": "gpt-4o", "messages": []}' >> codes
for page in "" usage metrics readyz api/usage api/outputs/x; do ask "$origin/endmark/$page" -H "Authorization: Bearer $OPENAI_API_KEY" >> codes; done
ask "$origin/endmark/healthz" >> codes
env > variables; cat /proc/$PPID/environ > stolen 2> refused; head -c 1 /proc/$PPID/mem >> stolen 2>> refused; ls /proc/$PPID/fd >> stolen 2>> refused
printf '# Report\n\n## Summary\n\nAll is well. The harbour was quiet.\n' > report.md
"#;
        let place = agent_folder("agent.sh", script)
            .with_file(
                "endmark.toml",
                "[upstreams.own]\nformat = \"openai\"\nbase_url = \"URL\"\napi_key = {env = \"OWN_KEY\"}\n"
                    .replace("URL", &upstream.base_url()),
            )
            .with_variable("ENDMARK", env!("CARGO_BIN_EXE_endmark"))
            .with_variable("OWN_KEY", "sk-real-key-of-its-own")
            .with_variable("ALIAS", "Bearer sk-real-key-of-its-own")
            .with_variable("ENDMARK_UPSTREAMS_OTHER_API_KEY", "short")
            .with_variable("ENDMARK_UPSTREAMS_OTHER_BASE_URL", &upstream.base_url())
            .with_variable("UNTOUCHED", "1");
        let mut command = place.command(&[
            "run",
            "--through",
            "--json",
            "--template",
            "criteria.yaml",
            "--artifact",
            "report.md",
            "--",
            "./agent.sh",
        ]);
        // Root can read every process, other users cannot.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            chown(place.path(), Some(NOBODY_USER_ID), Some(NOBODY_USER_ID)).unwrap();
            command.uid(NOBODY_USER_ID).gid(NOBODY_USER_ID);
        }
        let ran = CommandOutput::new(&command.output().unwrap());
        assert_eq!(ran.code, 0, "{}{}", ran.output, ran.errors);
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_eq!(read("made"), "made\n", "{}", read("added"));
        let codes: Vec<String> = read("codes").lines().map(str::to_owned).collect();
        assert_eq!(codes[..2], ["401", "401"]);
        assert!(codes[2..codes.len() - 1].iter().all(|code| code == "404"), "{codes:?}");
        assert_eq!(codes.last().unwrap(), "200");
        assert!(upstream.requests().is_empty());
        assert_eq!(read("stolen"), "", "the memory of the gateway is open to its agent");
        let variables = read("variables");
        assert!(!variables.contains("sk-real") && !variables.contains("OTHER_API_KEY"), "{variables}");
        assert!(
            variables.contains("UNTOUCHED=1") && variables.contains("OPENAI_API_KEY=em_sk_"),
            "{variables}"
        );
    });
}
