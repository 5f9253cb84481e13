//! Maps requests to responses.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::answer::Answer;
use crate::upstream::ReceivedRequest;

/// Determines the response to each request. Functions implement it:
/// `Upstream::start(|request: &ReceivedRequest| …)`.
pub trait Respond: Send + Sync + 'static {
    /// Returns the response to this request.
    fn respond(&self, request: &ReceivedRequest) -> Answer;
}

impl<F: Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static> Respond for F {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        self(request)
    }
}

type Predicate = Box<dyn Fn(&ReceivedRequest) -> bool + Send + Sync>;

/// Responds with the first of these: the response of a matching predicate, the next response of the list, the
/// default response.
///
/// Without a default response, a request after the end of the list gets a 500 that states its method and
/// path.
#[derive(Default)]
pub struct Script {
    matching_answers: Vec<(Predicate, Answer)>,
    remaining_answers: Mutex<VecDeque<Answer>>,
    default_answer: Option<Answer>,
}

impl Script {
    /// Creates a script without responses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a response to the list. It is used once.
    #[must_use]
    pub fn then(mut self, answer: Answer) -> Self {
        self.remaining_answers.get_mut().unwrap().push_back(answer);
        self
    }

    /// Adds a response to all requests that match a predicate.
    #[must_use]
    pub fn when(
        mut self,
        fits: impl Fn(&ReceivedRequest) -> bool + Send + Sync + 'static,
        answer: Answer,
    ) -> Self {
        self.matching_answers.push((Box::new(fits), answer));
        self
    }

    /// Sets the response to requests after the end of the list.
    #[must_use]
    pub fn default_answer(mut self, answer: Answer) -> Self {
        self.default_answer = Some(answer);
        self
    }
}

impl Respond for Script {
    fn respond(&self, request: &ReceivedRequest) -> Answer {
        if let Some((_, answer)) = self.matching_answers.iter().find(|(fits, _)| fits(request)) {
            return answer.clone();
        }
        if let Some(answer) = self.remaining_answers.lock().unwrap().pop_front() {
            return answer;
        }
        let missing = || {
            let message = format!("no answer is scripted for {} {}", request.method, request.path);
            Answer::error(500, "testkit", None, &message)
        };
        self.default_answer.clone().unwrap_or_else(missing)
    }
}
