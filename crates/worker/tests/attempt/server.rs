//! A server of repositories: `git http-backend` behind TLS on loopback, with a certificate of its own. `/private/` wants a token,
//! `/moved/` redirects, `/silent/` never answers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub const TOKEN: &str = "ghp_s3cr3tT0kenOfTheServer";

pub struct GitServer {
    root: TempDir,
    pub url: String,
    pub ca_file: PathBuf,
}

impl GitServer {
    /// Serves one repository under every prefix.
    pub async fn start() -> Self {
        let root = TempDir::new().expect("a directory");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("a certificate");
        let ca_file = root.path().join("ca.pem");
        std::fs::write(&ca_file, made.cert.pem()).expect("written");
        let chain = vec![CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a usable certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://127.0.0.1:{}", listener.local_addr().expect("an address").port());
        let repositories = root.path().join("served");
        std::fs::create_dir(&repositories).expect("made");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, repositories) = (acceptor.clone(), repositories.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &repositories).await;
                    }
                });
            }
        });
        Self { root, url, ca_file }
    }

    /// Makes the repository from files, each commit one; the first is tagged `v1`, the last is on `main` and on `feature/x`. Returns
    /// the hash of the first. A name that ends in `@` is a symbolic link to what it holds.
    pub fn fill(&self, commits: &[&[(&str, &str)]]) -> String {
        let source = self.root.path().join("source");
        git(self.root.path(), &["init", "--quiet", "--initial-branch=main", "source"]);
        for (number, files) in commits.iter().enumerate() {
            for (name, contents) in *files {
                let path = source.join(name);
                std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
                match name.strip_suffix('@') {
                    Some(link) => std::os::unix::fs::symlink(contents, source.join(link)).expect("linked"),
                    None => std::fs::write(path, contents).expect("written"),
                }
            }
            git(&source, &["add", "--all", "--force"]);
            git(&source, &["commit", "--quiet", "--message", "a commit"]);
            if number == 0 {
                git(&source, &["tag", "v1"]);
            }
        }
        git(&source, &["branch", "feature/x"]);
        let served = self.root.path().join("served/a.git");
        git(self.root.path(), &["clone", "--quiet", "--bare", "source", &served.display().to_string()]);
        git(&source, &["rev-parse", "v1"]).trim().to_owned()
    }
}

fn git(directory: &Path, args: &[&str]) -> String {
    let identity =
        ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"].map(|name| (name, "test@example.com"));
    let mut command = Command::new("git");
    command.args(args).current_dir(directory).envs(identity).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().expect("git is installed");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        let headers: Vec<_> =
            lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let mut request = Self { method, target, headers, body: bytes[end + 4..].to_vec() };
        let length: usize = request.header("content-length").parse().unwrap_or(0);
        while request.body.len() < length {
            stream.read_buf(&mut request.body).await.ok()?;
        }
        Some(request)
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

async fn serve(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, repositories: &Path) {
    let Some(request) = Request::read(&mut stream).await else { return };
    let answer = match request.target.trim_start_matches('/').split('/').next() {
        Some("silent") => std::future::pending().await,
        Some("moved") => format!("HTTP/1.1 302 Found\r\nLocation: {}\r\n", request.target.replacen("moved", "public", 1)).into_bytes(),
        Some("private") if !is_authorized(&request) => b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n".to_vec(),
        _ => {
            let repositories = repositories.to_owned();
            tokio::task::spawn_blocking(move || backend(&request, &repositories)).await.expect("git answers")
        }
    };
    let has_body = answer.windows(4).any(|part| part == b"\r\n\r\n");
    drop(stream.write_all(&answer).await);
    if !has_body {
        drop(stream.write_all(b"Content-Length: 0\r\nConnection: close\r\n\r\n").await);
    }
    drop(stream.shutdown().await);
}

fn is_authorized(request: &Request) -> bool {
    let expected = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{TOKEN}"));
    request.header("authorization") == format!("Basic {expected}")
}

fn backend(request: &Request, repositories: &Path) -> Vec<u8> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let path = path.splitn(3, '/').nth(2).unwrap_or_default();
    let mut command = Command::new("git");
    command.arg("http-backend").env("GIT_PROJECT_ROOT", repositories).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("PATH_INFO", format!("/{path}")).env("QUERY_STRING", query).env("REQUEST_METHOD", &request.method);
    command.env("CONTENT_TYPE", request.header("content-type")).env("HTTP_CONTENT_ENCODING", request.header("content-encoding"));
    command.env("GIT_PROTOCOL", request.header("git-protocol")).env("GIT_CONFIG_GLOBAL", "/dev/null");
    // The repository may belong to another user than the one the tests run as.
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "safe.directory").env("GIT_CONFIG_VALUE_0", "*");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("git has a backend");
    child.stdin.take().expect("asked for").write_all(&request.body).expect("it reads");
    let output = child.wait_with_output().expect("it ends").stdout;
    let status = output.strip_prefix(b"Status: ").and_then(|rest| rest.split(|byte| *byte == b'\r').next()).unwrap_or(b"200 OK");
    [b"HTTP/1.1 ", status, b"\r\nConnection: close\r\n", &output].concat()
}
