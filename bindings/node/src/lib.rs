//! The native addon of the npm package `endmark`. Its functions accept texts, bytes and JSON, and return
//! JSON.
//!
//! The package's TypeScript adds types. All decisions are in `endmark-bindings`.

mod files;

use std::sync::Arc;

use endmark_bindings::{Failure, LOG_TABLE, Object};
use napi::bindgen_prelude::{AsyncTask, Either, Result, Uint8Array};
use napi::{Env, Task};
use napi_derive::napi;

/// A text or bytes from the caller. Half of a surrogate pair in a JavaScript string arrives as U+FFFD, which
/// also has one UTF-16 unit.
type Given = Either<String, Uint8Array>;

/// Copies the inputs, because the caller or another worker could change them during the call.
fn copied(inputs: Vec<Given>) -> Vec<Vec<u8>> {
    let copy = |given: Given| match given {
        Either::A(text) => text.into_bytes(),
        Either::B(bytes) => bytes.to_vec(),
    };
    inputs.into_iter().map(copy).collect()
}

fn slices(inputs: &[Vec<u8>]) -> Vec<&[u8]> {
    inputs.iter().map(Vec::as_slice).collect()
}

/// The result of a call. Exactly one of the fields is set; both contain JSON.
#[napi(object)]
pub struct Answer {
    /// The answer of the function.
    pub answer: Option<String>,
    /// The reason why the call failed.
    pub failure: Option<String>,
}

impl Answer {
    fn of(result: std::result::Result<String, Failure>) -> Self {
        match result {
            Ok(answer) => Self { answer: Some(answer), failure: None },
            Err(failure) => Self { answer: None, failure: Some(failure.to_json()) },
        }
    }
}

/// Calls the function with this name. Inputs are texts or bytes; the options and the answer are JSON.
#[napi]
pub fn call(function: String, inputs: Vec<Given>, options: String) -> Answer {
    Answer::of(endmark_bindings::call(&function, &slices(&copied(inputs)), &options))
}

/// Does the same as `call` on a thread of Node's pool.
#[napi(ts_return_type = "Promise<Answer>")]
pub fn call_later(function: String, inputs: Vec<Given>, options: String) -> AsyncTask<Call> {
    AsyncTask::new(Call { object: None, function, inputs: copied(inputs), options })
}

/// A call that runs on a thread of Node's pool.
pub struct Call {
    /// The object whose method is called. `None` for a function.
    object: Option<Arc<Object>>,
    function: String,
    inputs: Vec<Vec<u8>>,
    options: String,
}

impl Task for Call {
    type Output = Answer;
    type JsValue = Answer;

    fn compute(&mut self) -> Result<Answer> {
        let inputs = slices(&self.inputs);
        Ok(Answer::of(match &self.object {
            None => endmark_bindings::call(&self.function, &inputs, &self.options),
            Some(object) => object.call(&self.function, &inputs, &self.options),
        }))
    }

    fn resolve(&mut self, _: Env, answer: Answer) -> Result<Answer> {
        Ok(answer)
    }
}

/// An object with state (`recovery`, `meter` or `agent_run`), or the reason why it could not be created.
#[napi]
pub struct Stateful(std::result::Result<Arc<Object>, Failure>);

#[napi]
impl Stateful {
    /// Creates an object. If the options are invalid, each call returns that error.
    #[napi(constructor)]
    pub fn new(class: String, inputs: Vec<Given>, options: String) -> Self {
        Self(Object::new(&class, &slices(&copied(inputs)), &options).map(Arc::new))
    }

    /// Returns the reason why the object could not be created, as JSON.
    #[napi(getter)]
    pub fn failure(&self) -> Option<String> {
        self.0.as_ref().err().map(Failure::to_json)
    }

    /// Calls the method with this name, like the function `call`.
    #[napi]
    pub fn call(&self, name: String, inputs: Vec<Given>, options: String) -> Answer {
        let object = self.0.as_ref().map_err(Failure::clone);
        Answer::of(object.and_then(|object| object.call(&name, &slices(&copied(inputs)), &options)))
    }

    /// Does the same as the method `call` on a thread of Node's pool.
    #[napi(ts_return_type = "Promise<Answer>")]
    pub fn call_later(&self, name: String, inputs: Vec<Given>, options: String) -> Result<AsyncTask<Call>> {
        let object = self.0.as_ref().map_err(|_| napi::Error::from_reason("it could not be made"))?;
        Ok(AsyncTask::new(Call {
            object: Some(Arc::clone(object)),
            function: name,
            inputs: copied(inputs),
            options,
        }))
    }
}

/// Returns the SQL that creates the table for cut replies. It can run twice.
#[napi]
pub fn log_table() -> &'static str {
    LOG_TABLE
}

/// Returns the version of the package.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
