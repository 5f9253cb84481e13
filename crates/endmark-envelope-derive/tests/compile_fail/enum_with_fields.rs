#[derive(endmark_envelope::Limits)]
enum State {
    Open,
    Closed(String),
}

fn main() {}
