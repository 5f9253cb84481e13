#[derive(endmark_envelope::Limits, serde::Serialize)]
struct NewIssue {
    #[serde(flatten)]
    person: Person,
}

#[derive(endmark_envelope::Limits, serde::Serialize)]
struct Person {
    name: String,
}

fn main() {}
