#[derive(endmark_envelope::Limits)]
struct NewIssue {
    #[limits(skip, max_bytes = 255)]
    title: String,
}

#[derive(endmark_envelope::Limits)]
struct Other {
    #[limits(max_bytes = 0)]
    title: String,
}

#[derive(endmark_envelope::Limits)]
struct Twice {
    #[limits(max_bytes = 1, max_bytes = 2)]
    title: String,
}

#[derive(endmark_envelope::Limits)]
struct Nothing {
    #[limits()]
    title: String,
}

fn main() {}
