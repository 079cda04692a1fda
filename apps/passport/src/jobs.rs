//! The five jobs, one file each: what is asked for, and the handler.
//!
//! | kind | priority | asks for | when it is done |
//! |---|---|---|---|
//! | `PARSE_FACTS` | 2 normal | facts of a document version | `FACTS_PARSED`; the compilation, where one was ordered with it |
//! | `COMPILE_PASSPORT` | 1 high | a passport version | `PASSPORT_COMPILED`, then `SIGN_PASSPORT` |
//! | `SIGN_PASSPORT` | 1 high | its signature | `PASSPORT_SIGNED`, then `GENERATE_QR` |
//! | `GENERATE_QR` | 2 normal | its label | `QR_GENERATED` |
//! | `DELIVER_WEBHOOK` | 3 low | one event to one endpoint | |
//!
//! Each does its slow work first and then, in one short transaction, writes its rows, appends its event, enqueues what
//! follows, and completes itself. A worker that lost its lease is refused there, and nothing of it is kept.

pub mod compile_passport;
pub mod deliver_webhook;
pub mod generate_qr;
pub mod parse_facts;
mod payload;
pub mod sign_passport;

pub use compile_passport::{CompilePassport, CompilePassportJob};
pub use deliver_webhook::{DeliverWebhook, DeliverWebhookJob};
pub use generate_qr::{GenerateQr, GenerateQrJob};
pub use parse_facts::{ParseFacts, ParseFactsJob};
pub use payload::Payload;
pub use sign_passport::{SignPassport, SignPassportJob};
