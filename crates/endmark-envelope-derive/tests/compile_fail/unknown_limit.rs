#[derive(endmark_envelope::Limits)]
struct NewIssue {
    #[limits(max_length = 255)]
    title: String,
}

fn main() {}
