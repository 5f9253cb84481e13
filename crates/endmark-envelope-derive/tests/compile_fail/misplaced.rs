#[derive(endmark_envelope::Limits)]
#[limits(max_bytes = 255)]
struct NewIssue {
    title: String,
}

fn main() {}
