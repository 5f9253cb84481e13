#[derive(endmark_envelope::Limits)]
struct NewIssue {
    #[limits(max_items = 10)]
    title: String,
}

fn main() {}
