#[derive(endmark_envelope::Limits)]
struct NewIssue {
    #[limits(max_bytes = 255)]
    number: u64,
}

fn main() {}
