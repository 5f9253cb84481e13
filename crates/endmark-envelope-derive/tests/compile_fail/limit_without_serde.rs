#[derive(endmark_envelope::Limits, serde::Serialize)]
struct Account {
    #[serde(skip)]
    #[limits(max_bytes = 64)]
    password: String,
}

fn main() {}
