/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The data connection from a node to a relay carries one hello, then packets. Each packet is a
 * header and the bytes of one CTF packet as the relay stores them. docs/formats/stream.md describes
 * the control connection, the order of all messages, and an example with bytes; lib/stream/ has the
 * code.
 *
 *   hello   16 bytes
 *   packet  header (hello.header_size bytes), then `length` bytes, any number of times
 *
 * Terms
 *   stream   the packets of one (container, channel, CPU); one file at the relay.
 *   handle   the relay's name of a stream, valid for the session that opened it.
 *   seq      a packet's number in its stream, the CTF packet's own; goes up by one.
 *
 * Extension rules: inside a version one only appends, and hello.header_size says how long a
 * packet's header is; a relay ignores the part that it does not know. `reserved` is zero and
 * checked. All integers are little-endian.
 */
#ifndef WEFT_LIB_ABI_STREAM_H_
#define WEFT_LIB_ABI_STREAM_H_

#include "event.h"

#define WEFT_STREAM_MAGIC 0x54535457u /* "WTST" */
#define WEFT_STREAM_VERSION 2u
#define WEFT_STREAM_NO_SEQ UINT64_MAX /* prev_seq of a stream's first packet */
#define WEFT_STREAM_MAX_PACKET_BYTES (2u * 1024u * 1024u)

/* The first bytes of a data connection. */
struct weft_stream_hello {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size; /* of struct weft_stream_packet, as the sender knows it */
  uint64_t session;     /* what the relay said on the control connection */
};

WEFT_ABI_ASSERT(sizeof(struct weft_stream_hello) == 16, "struct weft_stream_hello");

struct weft_stream_packet {
  uint64_t stream_handle;
  uint64_t seq;
  uint64_t prev_seq;   /* of the packet before in this stream, or WEFT_STREAM_NO_SEQ */
  uint64_t circuit_id; /* 0; for routing across proxies */
  uint32_t length;     /* of what follows the header */
  uint32_t crc32c;     /* Castagnoli: of this header with 0 here, then of what follows it */
  uint32_t events;     /* in the packet; a CTF packet does not say */
  uint32_t reserved;
};

WEFT_ABI_ASSERT(sizeof(struct weft_stream_packet) == 48, "struct weft_stream_packet");

#endif /* WEFT_LIB_ABI_STREAM_H_ */
