//! Answers to requests.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::USER_AGENT;
use hyper::{HeaderMap, Method, Request, StatusCode};
use linerate_documents::label::LabelledDocument;
use linerate_documents::run::RunDocument;
use linerate_engine::server::{ServiceAccess, ServiceRefusal};
use linerate_history::result_log::RecentPage;
use linerate_model::direction::Direction;
use linerate_sys::clock;
use linerate_units::{ByteCount, Port};
use serde::Serialize;
use serde_json::json;
use tokio::time::sleep;

use crate::body::{BusyMark, ResponseBody};
use crate::claims::{BrowserClaims, shortened};
use crate::connection::Connection;
use crate::keep_limit::KeepLimit;
use crate::librespeed::{self, LibrespeedEndpoint};
use crate::request_body::{self, BodyError};
use crate::response::{self, WebResponse};
use crate::result::{self, ServerFacts};
use crate::routes::{Query, Route};
use crate::sampling::SamplePoint;
use crate::server::WebObserver;
use crate::session::{MAX_TRANSFERS, WebSession};
use crate::session_table::{SessionTable, SessionToken};
use crate::{history_pages, origin};

/// Most characters of a browser's name.
const MAX_BROWSER: usize = 160;

/// Most bytes of one download.
const MAX_DOWNLOAD: u64 = 4 << 30;

/// Longest wait of a request where too many come.
const MAX_REQUEST_DELAY: Duration = Duration::from_secs(1);

/// Bytes of the header of an answer, about.
const HEADER_LENGTH: u64 = 600;

/// Longest backlog of the rate for which a small answer does not wait.
const MAX_REPLY_BACKLOG: Duration = Duration::from_millis(100);

/// Longest wait of an answer for the rate of the server.
const MAX_ANSWER_DELAY: Duration = Duration::from_secs(5);

/// Duration of a phase on the page, by default; longer ones measure slow starts better, and take longer.
const PHASE_DURATION: Duration = Duration::from_secs(8);

/// Shortest duration of a phase.
const MIN_PHASE_DURATION: Duration = Duration::from_secs(1);

/// Answer to a browser's claims. A `Value` of the run would need a second serialiser of all documents.
#[derive(Serialize)]
struct KeptResult<'a> {
    kept_as_run: Option<i64>,
    run: LabelledDocument<'a, RunDocument>,
}

/// State of the web service.
pub(crate) struct WebService {
    pub(crate) access: ServiceAccess,
    pub(crate) sessions: SessionTable,
    pub(crate) observer: Arc<dyn WebObserver>,
    pub(crate) kept: KeepLimit,
    pub(crate) port: Port,
    pub(crate) keeps_results: bool,
    pub(crate) shows_history: bool,
    pub(crate) host_name: String,
    pub(crate) recent: Arc<RecentPage>,
}

impl WebService {
    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Result<WebResponse, Infallible> {
        Ok(within_limits(&self.access, &connection, self.route(request, &connection)).await)
    }

    async fn route(&self, request: Request<Incoming>, connection: &Arc<Connection>) -> WebResponse {
        let Some(route) = Route::of_path(request.uri().path()) else {
            return response::refuse(StatusCode::NOT_FOUND, "no such page");
        };
        let is_allowed = |method: &Method| route.methods().split(", ").any(|allowed| allowed == method.as_str());
        if !is_allowed(request.method()) {
            return response::refuse_method(route.methods());
        }
        let is_cross_site = origin::is_cross_site(request.headers());
        match route {
            Route::File(file) if self.shows_history && request.uri().path() == "/" => {
                // Only a server that shows its history has a link to it.
                response::html(file.content.replacen("<nav id=\"history\" hidden>", "<nav id=\"history\">", 1))
            }
            Route::File(file) => response::text(StatusCode::OK, file.content_type, file.content),
            Route::Librespeed(endpoint) => self.librespeed(endpoint, request, connection, is_cross_site).await,
            _ if is_cross_site => {
                response::refuse(StatusCode::FORBIDDEN, "requests of other web sites are not answered here")
            }
            Route::History
            | Route::HistoryRun
            | Route::HistoryComparison
            | Route::HistoryTrend
            | Route::HistoryResults => self.history(route, &request).await,
            Route::Session if request.method() == Method::POST => self.open(request.headers(), connection),
            _ => self.within_session(route, request, connection).await,
        }
    }

    /// Opens a session.
    fn open(&self, headers: &HeaderMap, connection: &Arc<Connection>) -> WebResponse {
        let browser = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let browser = browser.map(|name| shortened(name, MAX_BROWSER));
        let session = match WebSession::open(&self.access, connection.peer.ip(), browser, MAX_TRANSFERS, true) {
            Ok(session) => session,
            Err(refusal) => return refuse_session(&refusal),
        };
        let Some(token) = SessionToken::random() else {
            return response::refuse(StatusCode::SERVICE_UNAVAILABLE, "the server has no random numbers");
        };
        let answer = json!({
            "session": token.as_str(),
            "number": session.number(),
            "linerate_version": env!("CARGO_PKG_VERSION"),
            "server": self.host_name,
            "address": connection.peer.ip().to_canonical().to_string(),
            "phase_ms": u64::try_from(self.phase_duration().as_millis()).unwrap_or(u64::MAX),
            "rate_limit_bits_per_second": self.access.max_total_rate(),
            "shows_history": self.shows_history,
        });
        self.sessions.add(token, session);
        response::json(StatusCode::CREATED, &answer)
    }

    /// Duration of a phase: both fit into the longest duration of a session, with time to spare.
    fn phase_duration(&self) -> Duration {
        let most = self.access.max_duration().map_or(PHASE_DURATION, |most| most.mul_f64(0.4));
        PHASE_DURATION.min(most).max(MIN_PHASE_DURATION)
    }

    async fn within_session(
        &self,
        route: Route,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
    ) -> WebResponse {
        let query = Query::new(request.uri().query());
        let token = query.value("session").and_then(SessionToken::parse);
        let session = token.as_ref().and_then(|token| self.sessions.get(token, connection.peer.ip()));
        let Some((token, session)) = token.zip(session) else {
            return response::refuse(StatusCode::GONE, "this session is over: reload the page to measure again");
        };
        session.touch();
        if let Some(reason) = session.ended() {
            return response::refuse(StatusCode::GONE, &reason);
        }
        match route {
            Route::Ping => response::text(StatusCode::NO_CONTENT, "text/plain", ""),
            Route::Download => {
                let bytes = query.number("bytes").unwrap_or(MAX_DOWNLOAD).min(MAX_DOWNLOAD);
                download(&session, connection, bytes, request.method() == Method::HEAD)
            }
            Route::Upload => upload(&session, connection, request.into_body()).await,
            Route::Result => self.finish(&token, &session, request.into_body()).await,
            _ => self.samples(&session, query.number("from").unwrap_or(0)),
        }
    }

    /// Samples of a session from this one on.
    #[expect(clippy::unused_self, reason = "one of the answers")]
    fn samples(&self, session: &WebSession, from: u64) -> WebResponse {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let points: Vec<SamplePoint> =
            session.look(|record| record.points.iter().skip(from).copied().collect()).unwrap_or_default();
        let point = |point: &SamplePoint| {
            json!({
                "at_ms": u64::try_from(point.at.as_millis()).unwrap_or(u64::MAX),
                "direction": point.direction,
                "bytes": point.bytes,
                "rtt_us": point.rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
                "congestion_window_bytes": point.congestion_window,
                "retransmitted_segments": point.retransmitted,
            })
        };
        let points: Vec<serde_json::Value> = points.iter().map(point).collect();
        response::json(StatusCode::OK, &json!({ "samples": points }))
    }

    /// Ends a session with its result.
    async fn finish(&self, token: &SessionToken, session: &Arc<WebSession>, body: Incoming) -> WebResponse {
        let claims = match request_body::read(body).await {
            Ok(text) => BrowserClaims::parse(&text),
            Err(error) => return refuse_body(error),
        };
        let claims = match claims {
            Ok(claims) => claims,
            Err(reason) => return response::refuse(StatusCode::BAD_REQUEST, &format!("the body is invalid: {reason}")),
        };
        let Some(record) = session.take_record() else {
            return response::refuse(StatusCode::CONFLICT, "this session has its result already");
        };
        let now = clock::monotonic_now();
        let facts = ServerFacts { port: self.port, rate_limit: self.access.max_total_rate() };
        let run = result::run_of(session, &record, &claims, facts, now);
        session.end("the session is over");
        self.sessions.remove(token);
        // A session that moved nothing is no measurement.
        let is_measured = record.phases.iter().any(|phase| !phase.bytes().is_zero());
        let keeps = is_measured && self.keeps_results && self.kept.admits(session.client, now);
        let kept = self.hand_over(session.number(), &run, keeps, is_measured).await;
        response::json(StatusCode::OK, &KeptResult { kept_as_run: kept, run: LabelledDocument::run(&run) })
    }

    /// Hands a run to the observer, on a thread that may wait for the disk; returns its number in the history.
    async fn hand_over(&self, number: u64, run: &RunDocument, keeps: bool, is_measured: bool) -> Option<i64> {
        if !is_measured {
            return None;
        }
        let (observer, run) = (Arc::clone(&self.observer), run.clone());
        tokio::task::spawn_blocking(move || observer.finished(number, &run, keeps)).await.ok().flatten()
    }

    async fn librespeed(
        &self,
        endpoint: LibrespeedEndpoint,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
        is_cross_site: bool,
    ) -> WebResponse {
        let query = Query::new(request.uri().query());
        let shares = query.value("cors").is_some();
        let (is_head, is_options) = (request.method() == Method::HEAD, request.method() == Method::OPTIONS);
        let mut response = if is_options {
            response::text(StatusCode::NO_CONTENT, "text/plain", "")
        } else if is_cross_site && !shares {
            response::refuse(
                StatusCode::FORBIDDEN,
                "pages of other web sites have to ask with cors=true, as librespeed's do",
            )
        } else {
            match endpoint {
                LibrespeedEndpoint::Address => {
                    let document = librespeed::address_document(connection.peer.ip());
                    response::text(StatusCode::OK, "application/json; charset=utf-8", document)
                }
                LibrespeedEndpoint::Garbage => {
                    let bytes = librespeed::download_size(query.value("ckSize"));
                    match self.of_address(connection) {
                        Ok(session) => download(&session, connection, bytes, is_head),
                        Err(refusal) => refuse_session(&refusal),
                    }
                }
                LibrespeedEndpoint::Empty if request.method() == Method::POST => match self.of_address(connection) {
                    Ok(session) => match upload(&session, connection, request.into_body()).await {
                        done if done.status() == StatusCode::OK => response::text(StatusCode::OK, "text/plain", ""),
                        refusal => refusal,
                    },
                    Err(refusal) => refuse_session(&refusal),
                },
                LibrespeedEndpoint::Empty => response::text(StatusCode::OK, "text/plain", ""),
            }
        };
        if shares {
            response::share_across_sites(&mut response);
        }
        response
    }

    /// Session of all clients of an address that have no token.
    fn of_address(&self, connection: &Connection) -> Result<Arc<WebSession>, ServiceRefusal> {
        let client = connection.peer.ip();
        self.sessions.of_address(client, || WebSession::open(&self.access, client, None, MAX_TRANSFERS, false))
    }

    async fn history(&self, route: Route, request: &Request<Incoming>) -> WebResponse {
        if !self.shows_history {
            return response::refuse(StatusCode::NOT_FOUND, "this server shows no history (--web-history)");
        }
        if !origin::names_this_host(request.headers(), &self.host_name) {
            return response::refuse(
                StatusCode::FORBIDDEN,
                "the history is only shown under this host's address or name: use http://ADDRESS:PORT/history",
            );
        }
        let query = request.uri().query().map(str::to_owned);
        let recent = Arc::clone(&self.recent);
        let page =
            tokio::task::spawn_blocking(move || history_pages::page(route, Query::new(query.as_deref()), &recent));
        page.await.unwrap_or_else(|_| response::refuse(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made"))
    }
}

/// Answers a request at the rates that the server permits.
pub(crate) async fn within_limits(
    access: &ServiceAccess,
    connection: &Arc<Connection>,
    answer: impl Future<Output = WebResponse>,
) -> WebResponse {
    let mark = BusyMark::new(connection);
    postpone(access, connection).await;
    let response = answer.await;
    pace(access, &response, connection).await;
    response.map(|body| body.with_mark(mark))
}

/// Counts an answer in the rate of the server, and waits where it is used up. Small answers wait only for a long backlog:
/// their time is what a client measures.
async fn pace(access: &ServiceAccess, response: &WebResponse, connection: &Connection) {
    let Some(length) = response.body().text_length() else { return };
    let share = access.share(connection.peer.ip());
    let wait = share.answer_delay(ByteCount::new(length + HEADER_LENGTH)).unwrap_or_default();
    if length > HEADER_LENGTH || wait > MAX_REPLY_BACKLOG {
        sleep(wait.min(MAX_ANSWER_DELAY)).await;
    }
}

/// Waits where the network of the client sends too many requests.
async fn postpone(access: &ServiceAccess, connection: &Connection) {
    if let Some(delay) = access.share(connection.peer.ip()).request_delay() {
        sleep(delay.min(MAX_REQUEST_DELAY)).await;
    }
}

pub(crate) fn refuse_session(refusal: &ServiceRefusal) -> WebResponse {
    response::refuse(StatusCode::SERVICE_UNAVAILABLE, &refusal.to_string())
}

fn refuse_body(error: BodyError) -> WebResponse {
    match error {
        BodyError::TooLarge => response::refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        BodyError::TooSlow => response::refuse(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        BodyError::Broken => response::refuse(StatusCode::BAD_REQUEST, "the body is incomplete"),
    }
}

pub(crate) fn download(
    session: &Arc<WebSession>,
    connection: &Arc<Connection>,
    bytes: u64,
    is_head: bool,
) -> WebResponse {
    const BYTES: &str = "application/octet-stream";
    if is_head {
        return response::text(StatusCode::OK, BYTES, "");
    }
    match session.begin(Direction::Down, connection) {
        Ok(transfer) => response::respond(StatusCode::OK, BYTES, ResponseBody::download(bytes, transfer)),
        Err(reason) => response::refuse(StatusCode::TOO_MANY_REQUESTS, &reason),
    }
}

pub(crate) async fn upload(session: &Arc<WebSession>, connection: &Arc<Connection>, body: Incoming) -> WebResponse {
    let transfer = match session.begin(Direction::Up, connection) {
        Ok(transfer) => transfer,
        Err(reason) => return response::refuse(StatusCode::TOO_MANY_REQUESTS, &reason),
    };
    match request_body::discard(body, &transfer).await {
        Ok(bytes) => response::json(StatusCode::OK, &json!({ "bytes": bytes })),
        Err(reason) => response::refuse(StatusCode::TOO_MANY_REQUESTS, &reason),
    }
}
