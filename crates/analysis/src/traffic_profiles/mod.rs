//! Application traffic next to a load, and the grade of what its users perceive.
//!
//! | part | content |
//! | --- | --- |
//! | [`TrafficProfile`] | profiles with their packets and deadlines |
//! | [`VoiceCall`] | playout and rating of a telephone call |
//! | [`GameSession`] | reaction times of a game |
//! | [`VideoStream`] | frames and freezes of a video call |
//! | [`StreamingPlayer`] | player of a video stream over TCP |

mod game;
mod profile;
mod streaming;
mod video;
mod voice;

pub use game::{GameInput, GameSession, GameUpdate};
pub use profile::{PacketFlow, TrafficProfile};
pub use streaming::{LADDER, MediaSegment, SEGMENT_TIME, StreamingFigures, StreamingPlayer};
pub use video::VideoStream;
pub use voice::{PlayedVoice, VoiceCall};
