//! The extension module of the Python package `endmark`. Its functions accept texts, bytes and JSON, and
//! return JSON.
//!
//! The package's Python files add types. All decisions are in `endmark-bindings`.

use endmark_bindings::{
    Failure, KEEP_OUTPUT, LOG_TABLE, OUTPUTS_TABLE, Object, READ_OUTPUT, REMOVE_OLDEST_OUTPUTS, USE_OUTPUT,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyString};

create_exception!(
    _native,
    NativeError,
    PyException,
    "A failure as JSON; the package raises its own exceptions from it."
);

/// An input of a function. It stays alive while the interpreter runs other threads.
enum Input {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
    /// A text that contained half of a surrogate pair, which UTF-8 cannot represent. Each half was replaced
    /// by U+FFFD, which also has three bytes.
    Repaired(Vec<u8>),
}

impl AsRef<[u8]> for Input {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
            Self::Repaired(bytes) => bytes,
        }
    }
}

/// Reads an argument as an input. `name` is the name of the argument.
fn read_input(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Input> {
    if let Ok(text) = value.cast::<PyString>() {
        return match text.extract::<PyBackedStr>() {
            Ok(text) => Ok(Input::Text(text)),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(value.py()) => {
                let bytes: Vec<u8> = text.call_method1("encode", ("utf-8", "surrogatepass"))?.extract()?;
                Ok(Input::Repaired(without_lone_surrogates(bytes)))
            }
            Err(error) => Err(error),
        };
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Input::Bytes(bytes.clone().into()));
    }
    Err(PyTypeError::new_err(format!("`{name}`: expected str or bytes, not {}", value.get_type().name()?)))
}

/// Replaces each half of a surrogate pair, which Python encodes as three bytes, by U+FFFD.
fn without_lone_surrogates(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at + 3 <= bytes.len() {
        if bytes[at] == 0xED && bytes[at + 1] >= 0xA0 {
            bytes[at..at + 3].copy_from_slice("\u{FFFD}".as_bytes());
            at += 2;
        }
        at += 1;
    }
    bytes
}

/// Reads the inputs of a function. Further inputs all have the name of the last one.
fn read_inputs(values: &[Bound<'_, PyAny>], function: &str) -> PyResult<Vec<Input>> {
    let names = endmark_bindings::input_names(function);
    let name = |index: usize| names.get(index).or(names.last()).copied().unwrap_or("input");
    values.iter().enumerate().map(|(index, value)| read_input(value, name(index))).collect()
}

/// Reads the options, which the package writes as JSON. They are repaired in the same way as the inputs, so
/// that the same text is equal in both.
fn read_options(options: &Bound<'_, PyString>) -> PyResult<String> {
    match read_input(options, "options")? {
        Input::Text(text) => Ok(text.to_string()),
        Input::Bytes(_) => Err(PyTypeError::new_err("`options`: expected str")),
        Input::Repaired(bytes) => {
            String::from_utf8(bytes).map_err(|error| PyTypeError::new_err(error.to_string()))
        }
    }
}

fn slices(inputs: &[Input]) -> Vec<&[u8]> {
    inputs.iter().map(AsRef::as_ref).collect()
}

fn raised(failure: Failure) -> PyErr {
    NativeError::new_err(failure.to_json())
}

/// Calls the function with this name. Inputs are `str` or `bytes`; the options and the answer are JSON. Other
/// threads can run during the call.
#[pyfunction]
fn call(
    py: Python<'_>,
    function: &str,
    inputs: Vec<Bound<'_, PyAny>>,
    options: &Bound<'_, PyString>,
) -> PyResult<String> {
    let (inputs, options) = (read_inputs(&inputs, function)?, read_options(options)?);
    py.detach(|| endmark_bindings::call(function, &slices(&inputs), &options)).map_err(raised)
}

/// An object with state: `recovery`, `meter` or `agent_run`.
#[pyclass(frozen, module = "endmark._native")]
struct Stateful(Object);

#[pymethods]
impl Stateful {
    #[new]
    fn new(
        py: Python<'_>,
        class: &str,
        inputs: Vec<Bound<'_, PyAny>>,
        options: &Bound<'_, PyString>,
    ) -> PyResult<Self> {
        let (inputs, options) = (read_inputs(&inputs, class)?, read_options(options)?);
        let made = py.detach(|| Object::new(class, &slices(&inputs), &options));
        made.map(Self).map_err(raised)
    }

    /// Calls the method with this name, like the function `call`.
    fn call(
        &self,
        py: Python<'_>,
        method: &str,
        inputs: Vec<Bound<'_, PyAny>>,
        options: &Bound<'_, PyString>,
    ) -> PyResult<String> {
        let (inputs, options) = (read_inputs(&inputs, method)?, read_options(options)?);
        py.detach(|| self.0.call(method, &slices(&inputs), &options)).map_err(raised)
    }
}

/// Defines the Rust functions of the package.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_class::<Stateful>()?;
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add("LOG_TABLE", LOG_TABLE)?;
    module.add("OUTPUTS_TABLE", OUTPUTS_TABLE)?;
    module.add("KEEP_OUTPUT", KEEP_OUTPUT)?;
    module.add("REMOVE_OLDEST_OUTPUTS", REMOVE_OLDEST_OUTPUTS)?;
    module.add("READ_OUTPUT", READ_OUTPUT)?;
    module.add("USE_OUTPUT", USE_OUTPUT)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))
}
