"""HighwayHash-64 of many records is that of its authors, whatever their lengths."""

from __future__ import annotations

import random
import struct

import pytest

from targets.nats.logs.highway import block_key, highway, highways
from tests.targets.nats.logs.build import highway as plain

KEY = bytes(range(32))
# The hashes of b"", b"\0", b"\0\1" … under the key 0 to 31, as bytes.
# Source: google/highwayhash, highwayhash/highwayhash_test.cc; minio/highwayhash 1.0.4, testVectors64.
PUBLISHED = bytes.fromhex(
    """
    536ec222de567a90 78ddcdc7aa43ab7e 623db5b09a56d0b8 803d468aabef6b5c da7e009368a405f2 4145a9e468168a2b
    6fcaef5b32cc4cbd 8294f53817ae024d 71315fe5085120e1 84157ac74e64d232 0ba903b1cd0ae1f6 155c415b61f4bbc3
    9cfa630004c23c24 ff41e665ce589aa8 235a4548a331b024 3bf349a4863f7940 32b87ef98934abcf e2c0c5c8d267fe19
    c25c569ca690dd04 04c571238e51d975 16ddd341119bad38 e0708acd2c436402 90336888625adba9 8c023f009254b0d7
    1ee559ea5a615f20 8428052196c8e0ee 4f4f28a7931afc1b 1da90db7b5752151 39c6a2a076891ff7 e7e3841fef3f09ae
    0f866111b092ca22 685a03cf7c00c79f fc80d5ecd964c9a0 fc8131a03cf7902c 9eeb91564ef85c18 9baa5227eff5c14f
    eb330a5e1a39b7f5 9c6ce9b4834bb8b9 b4d95c2a71fe425e dc973f0cf9f250a1 7d632d5ed722a57f 2bd3ff0dccd01a18
    2840851e98ed8938 2dee86c5e89742fb 9c0528bb454a066d 0c86ecb309365690 66c69740e9fca47a 081e916bc0ba2613
    344f152b8d1626b9 8d94b14589841999 be5e8234c58fa9a2 b6f03e21959080e9 e9c07b7083542e58 f56a8aa814946e08
    3d74f6208db986ee a7c0b109f67f9bf8 e8c3229ec19c7d4c 6f2a56245000979a efebe623f41cd45d 27e268049c6013df
    5a158841f6a40d6e a1d4d7504bba55b7 bd79746484347a88 a03921bfe9eb8eab ffa6d24c5d2c5475
    """
)


def test_published_vectors_are_met_together_and_one_by_one() -> None:
    expected = [number for (number,) in struct.iter_unpack("<Q", PUBLISHED)]
    messages = [bytes(range(length)) for length in range(len(expected))]
    assert 65 == len(expected)
    assert expected == highways(KEY, messages).tolist()
    assert expected == [highway(KEY, each) for each in messages]
    assert expected == [plain(KEY, each) for each in messages]


def test_messages_of_any_lengths_in_any_order_have_the_hashes_of_plain_numbers() -> None:
    chance = random.Random(7)
    messages = [chance.randbytes(chance.choice((0, 1, 15, 16, 31, 32, 33, 64, 100, 1000))) for _ in range(100)]
    assert [plain(KEY, each) for each in messages] == highways(KEY, messages).tolist()


def test_no_message_has_no_hash() -> None:
    assert [] == highways(KEY, []).tolist()


def test_key_of_another_size_is_our_mistake() -> None:
    with pytest.raises(AssertionError, match="a key of 31 bytes; expected 32"):
        highways(KEY[:31], [b""])


def test_keys_differ_by_name_and_block() -> None:
    keys = {block_key("orders-0", 1), block_key("orders-0", 2), block_key("orders-1", 1)}
    assert (3, {32}) == (len(keys), set(map(len, keys)))
