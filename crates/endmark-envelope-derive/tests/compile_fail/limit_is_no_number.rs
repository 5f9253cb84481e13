#[derive(endmark_envelope::Limits)]
struct NewIssue {
    #[limits(max_bytes = "255")]
    title: String,
    #[limits(max_bytes)]
    body: String,
}

fn main() {}
