//! `log`, `report` and the console with PostgreSQL: every machine shows the cut replies of all gateways.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{LinkState, Postgres, Request, ScriptedModel, TcpProxy, Upstream};

use crate::run::TestFolder;
use crate::serve::{ServeProcess, in_runtime};
use crate::shared::shared_folder_at;

const COUNT_RECOVERIES: &str = "SELECT count(*) FROM em_recoveries";

/// Sends a request whose reply is cut, and returns the request's id.
async fn request_cut_reply(served: &ServeProcess, mode: &str, session: &str) -> String {
    let body = json!({"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "Count."}]});
    let request = Request::post(served.address, "/v1/chat/completions").header("x-endmark-resume", mode);
    let reply = request.header("x-endmark-session", session).json(&body).send().await.read().await;
    reply.header("x-endmark-request").unwrap().to_owned()
}

async fn get(served: &ServeProcess, path: &str) -> String {
    Request::get(served.address, path).send().await.read().await.text()
}

async fn get_json(served: &ServeProcess, path: &str) -> Value {
    serde_json::from_str(&get(served, path).await).unwrap()
}

fn rows(data: &Value) -> Vec<(&str, bool)> {
    let rows = data["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["request_id"].as_str().unwrap(), row["machine"].is_object())).collect()
}

fn log(place: &TestFolder) -> Value {
    place.run(&["log", "--json"]).envelope()
}

/// Two gateways with one cut reply each. The connection of the second gateway to the database can be cut.
struct TwoGateways {
    postgres: Postgres,
    proxy: TcpProxy,
    _upstream: Upstream,
    places: [TestFolder; 2],
    served: [ServeProcess; 2],
    /// The ids of the requests. Each was sent to the gateway with the same index.
    requests: [String; 2],
}

impl TwoGateways {
    async fn start(postgres: Postgres) -> Self {
        let upstream = Upstream::start(ScriptedModel::new("one two three four five six seven eight")).await;
        let proxy = TcpProxy::start(postgres.port());
        let behind_proxy = format!("postgres://postgres@127.0.0.1:{}/endmark", proxy.port());
        let more = "[store_policy]\nkeep_text = true\n";
        let places = [postgres.url(), behind_proxy].map(|url| shared_folder_at(&url, &upstream, more));
        let served = [0, 1].map(|index| ServeProcess::start(&places[index], &[]));
        let first = request_cut_reply(&served[0], "on", "one").await;
        // Times are in whole seconds, and rows of the same second are ordered by instance.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let second = request_cut_reply(&served[1], "warn", "one").await;
        postgres.wait_for_number(COUNT_RECOVERIES, 2).await;
        postgres.wait_for_number("SELECT count(DISTINCT request_id) FROM em_usage", 2).await;
        Self { postgres, proxy, _upstream: upstream, places, served, requests: [first, second] }
    }
}

#[test]
fn each_machine_lists_and_sums_the_cut_replies_of_all() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let gateways = TwoGateways::start(postgres).await;
        let (places, [first, second]) = (&gateways.places, &gateways.requests);
        let [here, there] = [0, 1].map(|index| log(&places[index]));
        assert_eq!(rows(&here["data"]), [(second.as_str(), true), (first.as_str(), false)]);
        assert_eq!(rows(&there["data"]), [(second.as_str(), false), (first.as_str(), true)]);
        assert_eq!((&here["warnings"], &here["data"]["this_gateway_alone"]), (&json!([]), &Value::Null));
        let elsewhere = TestFolder::new()
            .with_variable("ENDMARK_STORE", &gateways.postgres.url())
            .with_variable("ENDMARK_JOURNAL", "missing.db");
        assert_eq!(rows(&log(&elsewhere)["data"]), [(second.as_str(), true), (first.as_str(), true)]);
        assert_eq!(elsewhere.run(&["log", "show", first]).code, 0);
        let table = places[0].run(&["log"]).output;
        assert!(table.contains("MACHINE") && table.contains("this one"), "{table}");
        assert!(table.contains(&format!("No continuation was requested for {second}")), "{table}");

        // For a reply of another gateway everything is shown except its texts.
        let shown = places[0].run(&["log", "show", second]).output;
        assert!(shown.contains("keeps the texts of the reply (pieces: 1)"), "{shown}");
        assert!(shown.contains("call 1  reply, m at local"), "{shown}");
        let shown = places[0].run(&["log", "show", second, "--json"]).envelope();
        let row = &shown["data"]["rows"][0];
        assert_eq!((&row["pieces"], &row["cut_kind"]), (&Value::Null, &json!("limit")));
        let own = places[0].run(&["log", "show", first, "--json"]).envelope();
        assert!(own["data"]["rows"][0]["pieces"].to_string().contains("four"), "{own}");
        let uploaded = gateways.postgres.query("SELECT r::text FROM em_recoveries r");
        assert!(!uploaded.contains("four"), "texts stay there: {uploaded}");

        let [report, other] = [0, 1].map(|index| places[index].run(&["report", "--json"]).envelope());
        assert_eq!((&report["data"], &report["warnings"]), (&other["data"], &json!([])));
        let data = &report["data"];
        assert_eq!(
            (&data["requests"], &data["cut"], &data["interrupted"]),
            (&json!(2), &json!(2), &json!(0))
        );
        let cuts = data["cuts"].as_array().unwrap().iter();
        assert_eq!(cuts.map(|cut| &cut["outcome"]).collect::<Vec<_>>(), ["cut", "resumed"]);
        assert!(data["spent"]["calls"].as_u64() >= Some(1) && data["would_cost"]["replies"] == 1, "{data}");
        assert_eq!(get_json(&gateways.served[0], "/endmark/api/report?since=7d").await, *data);
    });
}

#[test]
fn the_console_of_each_gateway_shows_the_requests_of_all() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let gateways = TwoGateways::start(postgres).await;
        let ([here, there], [first, second]) = (&gateways.served, &gateways.requests);
        // The pages include the rows of all gateways.
        for (path, is_marked) in
            [("recoveries?", true), ("requests?outcome=any-cut&", false), ("requests?", false)]
        {
            let page = get_json(here, &format!("/endmark/api/{path}limit=1")).await;
            assert_eq!(rows(&page), [(second.as_str(), is_marked)], "{path}");
            let next = page["next"].as_str().unwrap().replace(' ', "%20");
            let page = get_json(here, &format!("/endmark/api/{path}limit=1&before={next}")).await;
            assert_eq!(rows(&page), [(first.as_str(), false)], "{path}");
        }
        let resumed = get_json(there, "/endmark/api/requests?outcome=resumed&model=m&since=1h").await;
        assert_eq!((rows(&resumed), &resumed["next"]), (vec![(first.as_str(), false)], &Value::Null));
        assert!(resumed["rows"][0]["cuts"][0]["machine"]["name"].is_string(), "{resumed}");
        let none = get_json(there, "/endmark/api/requests?outcome=resumed&model=other").await;
        assert_eq!((rows(&none), &none["next"]), (Vec::new(), &Value::Null));
        let session = gateways.postgres.query("SELECT DISTINCT session FROM em_usage");
        let session = get_json(here, &format!("/endmark/api/sessions/{session}")).await;
        let calls = gateways.postgres.query_number("SELECT count(*) FROM em_usage");
        let usage = &session["usage"];
        assert_eq!((&usage["total"]["calls"], &usage["this_gateway_alone"]), (&json!(calls), &json!(false)));
        assert_eq!(session["of_this_gateway"][0], "compactions");
        let page = get(here, "/endmark/?span=7d").await;
        assert!(page.contains(second) && page.contains("2 replies</b> were cut this week"), "{page}");
        let page = get(here, "/endmark/sessions").await;
        assert_eq!(
            page.matches("href=\"/endmark/sessions/").count(),
            1,
            "one session on two gateways: {page}"
        );
        let page = get(here, &format!("/endmark/requests/{second}")).await;
        assert!(page.contains("are on the machine"), "{page}");
    });
}

#[test]
fn no_cut_reply_is_lost_or_duplicated_during_a_database_outage() {
    let Some(postgres) = Postgres::start() else { return };
    in_runtime(async move {
        let gateways = TwoGateways::start(postgres).await;
        let TwoGateways {
            postgres,
            proxy,
            _upstream,
            places,
            served: [here, there],
            requests: [first, second],
        } = gateways;
        proxy.set_link(LinkState::Cut);
        let third = request_cut_reply(&there, "on", "two").await;
        let alone = log(&places[1]);
        assert_eq!(rows(&alone["data"]), [(third.as_str(), false), (second.as_str(), false)]);
        assert_eq!(alone["data"]["this_gateway_alone"], true);
        assert_eq!(alone["warnings"][0]["code"], "THIS_GATEWAY_ALONE", "{alone}");
        let report = places[1].run(&["report", "--json"]).envelope();
        let data = &report["data"];
        assert_eq!((&data["cut"], &data["this_gateway_alone"]), (&json!(2), &json!(true)));
        assert_eq!(report["warnings"][0]["code"], "THIS_GATEWAY_ALONE", "{report}");
        let unknown = places[1].run(&["log", "show", &first]);
        assert!(unknown.code == 4 && unknown.errors.contains("cannot be reached"), "{}", unknown.errors);
        for path in ["recoveries", "requests", "report?since=7d"] {
            let data = get_json(&there, &format!("/endmark/api/{path}")).await;
            assert_eq!(data["this_gateway_alone"], true, "{path}");
        }
        for path in ["", "requests", "sessions"] {
            let page = get(&there, &format!("/endmark/{path}")).await;
            assert!(
                page.contains("records of this gateway alone") && !page.contains(&first),
                "{path}: {page}"
            );
        }
        assert_eq!(rows(&log(&places[0])["data"]).len(), 2);
        // A killed gateway publishes the records in its journal at its next start.
        assert_eq!(there.stop("-KILL").0, None);
        proxy.set_link(LinkState::Up);
        let there = ServeProcess::start(&places[1], &[]);
        postgres.wait_for_number(COUNT_RECOVERIES, 3).await;
        for place in &places {
            let all = log(place);
            let ids: Vec<&str> = rows(&all["data"]).into_iter().map(|(id, _)| id).collect();
            assert_eq!(ids, [third.as_str(), &second, &first]);
        }
        for served in [here, there] {
            assert_eq!(served.stop("-TERM").0, Some(0));
        }
        assert_eq!(postgres.query_number(COUNT_RECOVERIES), 3);
    });
}
