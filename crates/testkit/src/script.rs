//! Maps requests to responses.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::answer::Answer;
use crate::upstream::Received;

/// Determines the response to a request. Functions implement it: `Upstream::start(|request: &Received| …)`.
pub trait Respond: Send + Sync + 'static {
    /// Returns the response to this request.
    fn respond(&self, request: &Received) -> Answer;
}

impl<F: Fn(&Received) -> Answer + Send + Sync + 'static> Respond for F {
    fn respond(&self, request: &Received) -> Answer {
        self(request)
    }
}

type Predicate = Box<dyn Fn(&Received) -> bool + Send + Sync>;

/// Responds in order: first by a matching predicate, then from the list, then with `otherwise`.
///
/// Without `otherwise`, a request after the end of the list gets a 500 with its method and path.
#[derive(Default)]
pub struct Script {
    exceptions: Vec<(Predicate, Answer)>,
    list: Mutex<VecDeque<Answer>>,
    default_answer: Option<Answer>,
}

impl Script {
    /// Creates a script without responses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next response of the list. It is used once.
    #[must_use]
    pub fn then(mut self, answer: Answer) -> Self {
        self.list.get_mut().unwrap().push_back(answer);
        self
    }

    /// Adds a response to every matching request.
    #[must_use]
    pub fn when(mut self, fits: impl Fn(&Received) -> bool + Send + Sync + 'static, answer: Answer) -> Self {
        self.exceptions.push((Box::new(fits), answer));
        self
    }

    /// Sets the response after the end of the list.
    #[must_use]
    pub fn default_answer(mut self, answer: Answer) -> Self {
        self.default_answer = Some(answer);
        self
    }
}

impl Respond for Script {
    fn respond(&self, request: &Received) -> Answer {
        if let Some((_, answer)) = self.exceptions.iter().find(|(fits, _)| fits(request)) {
            return answer.clone();
        }
        if let Some(answer) = self.list.lock().unwrap().pop_front() {
            return answer;
        }
        let missing = || {
            let message = format!("no answer is scripted for {} {}", request.method, request.path);
            Answer::error(500, "testkit", None, &message)
        };
        self.default_answer.clone().unwrap_or_else(missing)
    }
}
