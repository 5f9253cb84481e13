#[derive(endmark_envelope::Limits)]
enum State {
    Open,
    #[limits(max_bytes = 64)]
    Closed,
}

fn main() {}
