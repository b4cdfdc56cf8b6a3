// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {World} from "./World.sol";

/// The record: where it lies, how its bits lie, and that every way to read it agrees (spec §2.5).
contract RecordTest is World {
    bytes32 private constant TAG = keccak256("tag");

    function packed(address holder, uint256 time, uint256 state, uint256 flags, uint256 reserved)
        private
        pure
        returns (uint256)
    {
        return uint160(holder) | (time << 160) | (state << 224) | (flags << 232) | (reserved << 240);
    }

    /// Any word put into the slot is what every read answers, bit for bit.
    function testFuzz_readsAgreeOnAnyWord(uint256 tokenId, address holder, uint64 time, uint8 flags, uint16 reserved)
        public
    {
        uint256 word = packed(holder, time, 4, flags, reserved);
        vm.store(address(registry), keccak256(abi.encode(tokenId, uint256(3))), bytes32(word));

        (bool success, bytes memory data) =
            address(registry).staticcall(abi.encodeWithSelector(bytes4(0xeac8f5b8), tokenId));
        require(success && data.length == 5 * 32, "five words");
        require(
            keccak256(data)
                == keccak256(abi.encode(uint256(uint160(holder)), uint256(time), 4, uint256(flags), uint256(reserved))),
            "getAsset"
        );
        require(registry.getAssets(one(tokenId))[0] == word, "getAssets");
        (uint256[] memory words, bytes32[] memory hashes) = registry.getAssetsWithMetadata(one(tokenId));
        require(words[0] == word && hashes[0] == 0, "getAssetsWithMetadata");
        require(registry.ownerOf(tokenId) == holder, "ownerOf");
    }

    /// Batches keep the order asked, duplicates and unminted ids included.
    function testFuzz_batchesKeepOrder(uint8[] calldata picks) public {
        vm.assume(picks.length <= 40);
        for (uint256 i = 0; i < 3; ++i) mint();
        uint256[] memory ids = new uint256[](picks.length);
        for (uint256 i = 0; i < picks.length; ++i) ids[i] = picks[i] % 6;
        uint256[] memory words = registry.getAssets(ids);
        (uint256[] memory records, bytes32[] memory hashes) = registry.getAssetsWithMetadata(ids);
        require(words.length == ids.length && records.length == ids.length && hashes.length == ids.length, "length");
        for (uint256 i = 0; i < ids.length; ++i) {
            bool minted = ids[i] >= 1 && ids[i] <= 3;
            require(words[i] == wordOf(ids[i]) && records[i] == words[i], "word");
            require((words[i] != 0) == minted, "zero exactly where nothing was minted");
            require(hashes[i] == (minted ? METADATA : bytes32(0)), "metadata hash");
        }
    }

    function testFuzz_unmintedReadsAsZero(uint256 tokenId) public view {
        (address holder, uint64 time, uint8 state, uint8 flags, uint16 reserved) = registry.getAsset(tokenId);
        require(holder == address(0) && time == 0 && state == 0 && flags == 0 && reserved == 0, "zero record");
        require(registry.metadataHash(tokenId) == 0 && registry.getTagByToken(tokenId) == 0, "nothing else either");
    }

    function testFuzz_mintWritesTheWord(address to, uint64 time, bytes32 metadata) public {
        vm.assume(to != address(0));
        vm.warp(time);
        does(issuer, abi.encodeCall(registry.mint, (to, metadata)));
        require(wordOf(1) == packed(to, time, 1, 0, 0), "owner, time, MINTED");
        require(registry.metadataHash(1) == metadata, "metadata hash");
    }

    function testFuzz_tagLeadsToTheWholeRecord(bytes32 tagHash, bytes32 other) public {
        vm.assume(tagHash != 0 && other != tagHash);
        uint256 tokenId = mint();
        does(binder, abi.encodeCall(registry.bindTag, (tokenId, tagHash)));
        (uint256 found, uint256 record, bytes32 metadata) = registry.getAssetByTag(tagHash);
        require(found == tokenId && record == wordOf(tokenId) && metadata == METADATA, "by tag");
        require(registry.getTokenByTag(tagHash) == tokenId && registry.getTagByToken(tokenId) == tagHash, "both ways");
        (found, record, metadata) = registry.getAssetByTag(other);
        require(found == 0 && record == 0 && metadata == 0, "an unknown tag gives zeros");
        require(registry.getTokenByTag(other) == 0, "no token");
    }

    /// Every step of a long life stamps the second in which it happened.
    function test_timestampIsTheLastChange() public {
        uint256 tokenId = mint();
        bytes[11] memory calls = [
            abi.encodeCall(registry.bindTag, (tokenId, tagOf(tokenId))),
            abi.encodeCall(registry.activate, (tokenId)),
            "",
            abi.encodeCall(registry.flag, (tokenId, 0x20, REASON)),
            abi.encodeCall(registry.flag, (tokenId, 0x01, REASON)),
            abi.encodeCall(registry.flag, (tokenId, 0x04, REASON)),
            abi.encodeCall(registry.resolve, (tokenId, 0x01, REASON)),
            abi.encodeCall(registry.resolve, (tokenId, 0x04, REASON)),
            abi.encodeCall(registry.initiateTransfer, (tokenId, recipient, uint64(START + 3 days), REASON)),
            abi.encodeCall(registry.acceptTransfer, (tokenId)),
            abi.encodeCall(registry.recycle, (tokenId))
        ];
        address[11] memory callers =
            [binder, qa, stranger, attester, owner, guardian, owner, guardian, owner, recipient, recipient];
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.warp(START + 10 * (i + 1));
            does(callers[i], i == 2 ? claimCall(tokenId, owner) : calls[i]);
            // An offer changes no record, so it leaves the time alone.
            uint256 expected = i == 8 ? START + 10 * i : START + 10 * (i + 1);
            require(uint64(wordOf(tokenId) >> 160) == expected, "timestamp");
        }
    }

    function one(uint256 tokenId) private pure returns (uint256[] memory ids) {
        ids = new uint256[](1);
        ids[0] = tokenId;
    }
}
