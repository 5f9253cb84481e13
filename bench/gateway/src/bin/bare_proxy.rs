//! A minimal proxy built with hyper and hyper-util. It does not parse bodies, stores nothing and has no
//! limits.
//!
//!     bare_proxy PORT UPSTREAM_PORT

use std::error::Error;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut port = || {
        Ok::<u16, Box<dyn Error>>(arguments.next().ok_or("usage: bare_proxy PORT UPSTREAM_PORT")?.parse()?)
    };
    let (own, upstream) = (port()?, port()?);
    let listener = TcpListener::bind(("127.0.0.1", own)).await?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let client = client.clone();
        let forward = move |mut request: Request<Incoming>| {
            let client = client.clone();
            async move {
                let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
                let uri: Uri = format!("http://127.0.0.1:{upstream}{path}").parse()?;
                *request.uri_mut() = uri;
                request.headers_mut().remove(HOST);
                Ok::<_, Box<dyn Error + Send + Sync>>(client.request(request).await?)
            }
        };
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(forward)));
    }
}
