struct Person {
    name: String,
}

#[derive(endmark_envelope::Limits)]
struct NewIssue {
    authors: Vec<Person>,
}

fn main() {}
