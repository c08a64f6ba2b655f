//! Compression of large results: a document of a run may be larger than the megabyte that servers accept.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Header of a compressed result.
pub(crate) const ENCODING: &str = "Content-Encoding";

/// Value of that header (RFC 9110, section 8.4.1.2).
pub(crate) const DEFLATE: &str = "deflate";

/// Smallest result that is compressed.
const MIN_COMPRESSED: usize = 64 * 1024;

/// Largest result that is read.
const MAX_RESULT: u64 = 64 << 20;

/// Compressed bytes; `None` for a small result.
pub(crate) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < MIN_COMPRESSED {
        return None;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Bytes of a compressed result; `None` when they are not valid, or too many.
pub(crate) fn decompress(compressed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = ZlibDecoder::new(compressed).take(MAX_RESULT + 1).read_to_end(&mut bytes).ok()?;
    (read as u64 <= MAX_RESULT).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_results_are_compressed_and_come_back() {
        assert_eq!(compress(&vec![b'x'; MIN_COMPRESSED - 1]), None);
        let text = "{\"t_ns\": 1234567}, ".repeat(100_000);
        let compressed = compress(text.as_bytes()).expect("large");
        assert!(compressed.len() * 10 < text.len(), "{}", compressed.len());
        assert_eq!(decompress(&compressed).as_deref(), Some(text.as_bytes()));
        assert_eq!(decompress(&compressed[..compressed.len() / 2]), None);
        assert_eq!(decompress(b"no result"), None);
    }

    #[test]
    fn a_bomb_is_not_read() {
        let zeros = vec![0; usize::try_from(MAX_RESULT).expect("64 bits") + 1];
        assert_eq!(decompress(&compress(&zeros).expect("large")), None);
    }
}
