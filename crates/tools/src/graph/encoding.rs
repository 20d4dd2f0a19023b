//! A segment as bytes. They begin with a version and a checksum: what another release wrote, or what is damaged, is not read.

use crate::graph::segment::{ListTable, Segment, TextTable};

/// Changes with everything that makes stored segments unusable: the format, the words, the limits.
pub(crate) const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"BCCGRAPH";

/// The length of the magic bytes, the version and the checksum.
const HEAD: usize = 8 + 4 + 8;

/// The bytes of a segment.
pub(crate) fn encode(segment: &Segment) -> Vec<u8> {
    let mut body = Vec::new();
    put_text(&mut body, &segment.names);
    put(&mut body, &segment.lengths, |length| [*length]);
    put(&mut body, &segment.normals, |hash| hash.to_le_bytes());
    put(&mut body, &segment.by_normal, |name| name.to_le_bytes());
    put(&mut body, &segment.normal_places, |place| place.to_le_bytes());
    put(&mut body, &segment.tokens, |hash| hash.to_le_bytes());
    put(&mut body, &segment.token_triples, |count| count.to_le_bytes());
    put_lists(&mut body, &segment.postings);
    let triples: Vec<u32> = segment.triples.iter().flatten().copied().collect();
    put(&mut body, &triples, |name| name.to_le_bytes());
    put(&mut body, &segment.lines, |line| line.to_le_bytes());
    put(&mut body, &segment.attribute_numbers, |number| number.to_le_bytes());
    put_text(&mut body, &segment.attributes);
    put_lists(&mut body, &segment.edges);
    let problems: Vec<u32> = segment.problems.iter().flatten().copied().collect();
    put(&mut body, &problems, |number| number.to_le_bytes());
    body.extend_from_slice(&segment.problem_count.to_le_bytes());
    let mut bytes = Vec::with_capacity(HEAD + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&checksum(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

fn put<T, const N: usize>(body: &mut Vec<u8>, items: &[T], bytes: fn(&T) -> [u8; N]) {
    body.extend_from_slice(&u64::try_from(items.len()).unwrap_or(u64::MAX).to_le_bytes());
    body.reserve(items.len() * N);
    for item in items {
        body.extend_from_slice(&bytes(item));
    }
}

fn put_text(body: &mut Vec<u8>, table: &TextTable) {
    put(body, table.text.as_bytes(), |byte| [*byte]);
    put(body, &table.ends, |end| end.to_le_bytes());
}

fn put_lists(body: &mut Vec<u8>, table: &ListTable) {
    put(body, &table.ends, |end| end.to_le_bytes());
    put(body, &table.items, |item| item.to_le_bytes());
}

/// The segment in `bytes`; none if they are damaged or of another version.
pub(crate) fn decode(bytes: &[u8]) -> Option<Segment> {
    let (head, body) = bytes.split_at_checked(HEAD)?;
    let mut head = EncodedBytes(head);
    if head.take(8)? != MAGIC || head.u32()? != VERSION || head.u64()? != checksum(body) {
        return None;
    }
    let mut body = EncodedBytes(body);
    let segment = Segment {
        names: body.text()?,
        lengths: body.bytes()?,
        normals: body.u64s()?,
        by_normal: body.u32s()?,
        normal_places: body.u32s()?,
        tokens: body.u64s()?,
        token_triples: body.u32s()?,
        postings: body.lists()?,
        triples: grouped(&body.u32s()?)?,
        lines: body.u32s()?,
        attribute_numbers: body.u32s()?,
        attributes: body.text()?,
        edges: body.lists()?,
        problems: grouped(&body.u32s()?)?,
        problem_count: body.u32()?,
    };
    body.0.is_empty().then_some(segment)
}

fn grouped<const N: usize>(items: &[u32]) -> Option<Vec<[u32; N]>> {
    let (groups, rest) = items.as_chunks::<N>();
    rest.is_empty().then(|| groups.to_vec())
}

/// Tells accidental damage. Eight bytes at a time, because a hash for security would take longer than reading the file.
fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut tail = [0; 8];
    for (to, from) in tail.iter_mut().zip(rest) {
        *to = *from;
    }
    let words = words.iter().map(|word| u64::from_le_bytes(*word)).chain([u64::from_le_bytes(tail)]);
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    words.fold(length ^ 0x9e37_79b9_7f4a_7c15, |hash, word| {
        (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

/// Bytes that are read from the front.
struct EncodedBytes<'a>(&'a [u8]);

impl<'a> EncodedBytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// The bytes of a list of items of `size` bytes.
    fn list(&mut self, size: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u64()?).ok()?;
        self.take(count.checked_mul(size)?)
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        self.list(1).map(<[u8]>::to_vec)
    }

    fn u32s(&mut self) -> Option<Vec<u32>> {
        let (items, _) = self.list(4)?.as_chunks::<4>();
        Some(items.iter().map(|item| u32::from_le_bytes(*item)).collect())
    }

    fn u64s(&mut self) -> Option<Vec<u64>> {
        let (items, _) = self.list(8)?.as_chunks::<8>();
        Some(items.iter().map(|item| u64::from_le_bytes(*item)).collect())
    }

    fn text(&mut self) -> Option<TextTable> {
        Some(TextTable { text: String::from_utf8(self.bytes()?).ok()?, ends: self.u32s()? })
    }

    fn lists(&mut self) -> Option<ListTable> {
        Some(ListTable { ends: self.u32s()?, items: self.u32s()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Segment {
        Segment {
            names: TextTable { text: "噬菌体binds".into(), ends: vec![9, 14] },
            lengths: vec![3, 1],
            normals: vec![7, u64::MAX],
            by_normal: vec![0, 1],
            normal_places: vec![0, 1],
            tokens: vec![1, 2],
            token_triples: vec![3, 4],
            postings: ListTable { ends: vec![1, 2], items: vec![0, 1] },
            triples: vec![[0, 1, 0]],
            lines: vec![5],
            attribute_numbers: vec![],
            attributes: TextTable::default(),
            edges: ListTable { ends: vec![1, 1], items: vec![0] },
            problems: vec![[1, 2], [3, 4]],
            problem_count: 2,
        }
    }

    #[test]
    fn a_segment_is_read_as_it_was_written() {
        for segment in [example(), Segment::default()] {
            assert_eq!(decode(&encode(&segment)), Some(segment));
        }
    }

    #[test]
    fn every_damaged_byte_and_every_length_is_noticed() {
        let bytes = encode(&example());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(decode(&damaged), None, "byte {at}");
            assert_eq!(decode(&bytes[..at]), None, "{at} bytes");
        }
        assert_eq!(decode(&[bytes, vec![0]].concat()), None);
    }

    #[test]
    fn numbers_out_of_range_find_nothing() {
        let wrong = Segment {
            names: TextTable { text: "é".into(), ends: vec![1, 900, 0] },
            edges: ListTable { ends: vec![9, 2], items: vec![1] },
            ..example()
        };
        assert_eq!((wrong.names.get(0), wrong.names.get(1), wrong.names.get(2)), (None, None, None));
        assert_eq!((wrong.edges.list(0), wrong.edges.list(1), wrong.edges.list(7)), (&[][..], &[][..], &[][..]));
        assert_eq!(wrong.attributes(99), None);
    }
}
