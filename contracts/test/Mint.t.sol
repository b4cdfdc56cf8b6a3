// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAssetRegistry} from "../src/IAssetRegistry.sol";
import {ISSUER} from "../src/Lifecycle.sol";
import {World} from "./World.sol";

/// Token ids: counted, chosen, skipped and refused. Metadata hashes and tags, which come with a token.
contract MintTest is World {
    function test_countsFromOne() public {
        require(mint() == 1 && mint() == 2 && mint() == 3, "1, 2, 3");
        require(registry.totalSupply() == 3 && registry.balanceOf(maker) == 3, "counted");
    }

    function testFuzz_batchCountsOn(bytes32[] calldata metadata) public {
        vm.assume(metadata.length <= 20);
        mint();
        uint256[] memory ids =
            abi.decode(does(issuer, abi.encodeCall(registry.mintBatch, (owner, metadata))), (uint256[]));
        require(ids.length == metadata.length, "one id for each hash");
        for (uint256 i = 0; i < ids.length; ++i) {
            require(ids[i] == 2 + i, "in order");
            require(registry.metadataHash(ids[i]) == metadata[i] && registry.ownerOf(ids[i]) == owner, "as asked");
        }
        require(registry.totalSupply() == 1 + ids.length && registry.balanceOf(owner) == ids.length, "counted");
        require(mint() == 2 + ids.length, "the counter moved along");
    }

    /// Counting skips what importers took, in any order, and never gives an id twice.
    function testFuzz_countingSkipsTakenIds(uint8[8] calldata taken, bool inBatch) public {
        uint256 imported;
        for (uint256 i = 0; i < taken.length; ++i) {
            uint256 id = 1 + (taken[i] % 12);
            (bool success,) = attempt(issuer, abi.encodeCall(registry.mintWithId, (maker, id, METADATA)));
            if (success) ++imported;
        }
        uint256 last;
        for (uint256 i = 0; i < 6; ++i) {
            uint256 id = inBatch
                ? abi.decode(does(issuer, abi.encodeCall(registry.mintBatch, (owner, new bytes32[](1)))), (uint256[]))[0]
                : abi.decode(does(issuer, abi.encodeCall(registry.mint, (owner, METADATA))), (uint256));
            require(id > last && registry.ownerOf(id) == owner, "a new id, higher than the last");
            for (uint256 j = 0; j < taken.length; ++j) require(id != 1 + (taken[j] % 12), "not an imported one");
            last = id;
        }
        require(registry.totalSupply() == imported + 6, "supply");
    }

    /// An import in order leaves nothing to skip: the next counted mint costs what it always costs.
    function test_importsInOrderMoveTheCounter() public {
        for (uint256 id = 1; id <= 200; ++id) {
            does(issuer, abi.encodeCall(registry.mintWithId, (maker, id, METADATA)));
        }
        uint256 start = gasleft();
        require(mint() == 201, "the next");
        uint256 first = start - gasleft();
        start = gasleft();
        mint();
        require(first < start - gasleft() + 5_000, "without walking over the imported ones");
    }

    function testFuzz_takesAnyOtherId(uint256 tokenId) public {
        vm.assume(!guarded(tokenId));
        does(issuer, abi.encodeCall(registry.mintWithId, (maker, tokenId, METADATA)));
        require(stateOf(tokenId) == 1, "minted");
        fails(
            issuer,
            abi.encodeCall(registry.mintWithId, (owner, tokenId, METADATA)),
            because(IAssetRegistry.TokenIdTaken.selector, tokenId)
        );
    }

    /// Every id that would make a gateway's attestation preimage an unsigned transaction.
    function testFuzz_refusesTransactionIds(uint8 first, uint256 rest, bool legacy) public {
        uint256 tokenId = legacy
            ? (0xf87e << 240) | (rest >> 16)
            : (uint256(first & 0x7f) << 248) | (0xf87d << 232) | (rest >> 24);
        require(guarded(tokenId), "the test's own rule");
        refused(tokenId);
    }

    /// Counting goes past an import of any size, and never over its record.
    function test_countingPassesHighImports() public {
        uint256[3] memory imports = [uint256(3_000_000), 1, 3_000_002];
        for (uint256 i = 0; i < 3; ++i) {
            does(issuer, abi.encodeCall(registry.mintWithId, (owner, imports[i], METADATA)));
        }
        for (uint256 id = 3_000_003; id < 3_000_006; ++id) {
            does(issuer, abi.encodeCall(registry.mint, (maker, METADATA)));
            require(registry.ownerOf(id) == maker, "after the highest import");
        }
        does(issuer, abi.encodeCall(registry.mintWithId, (owner, 3_000_006, METADATA)));
        does(issuer, abi.encodeCall(registry.mint, (maker, METADATA)));
        require(registry.ownerOf(3_000_006) == owner && registry.ownerOf(3_000_007) == maker, "past an import");
    }

    /// The edges of both ranges, written out.
    function test_refusesExactlyTheRanges() public {
        refused(0);
        refused(uint256(0x00f87d) << 232);
        refused((uint256(0x00f87e) << 232) - 1);
        refused(uint256(0x01f87d) << 232);
        refused((uint256(0x04f87e) << 232) - 1);
        refused(uint256(0x7ff87d) << 232);
        refused(uint256(0xf87e) << 240);
        refused((uint256(0xf87f) << 240) - 1);
        uint256[8] memory neighbours = [
            (uint256(0x00f87d) << 232) - 1,
            uint256(0x00f87e) << 232,
            (uint256(0x04f87d) << 232) - 1,
            uint256(0x04f87e) << 232,
            uint256(0x80f87d) << 232,
            (uint256(0xf87e) << 240) - 1,
            uint256(0xf87f) << 240,
            type(uint256).max
        ];
        for (uint256 i = 0; i < neighbours.length; ++i) {
            does(issuer, abi.encodeCall(registry.mintWithId, (maker, neighbours[i], METADATA)));
        }
    }

    /// Counted ids are 64 bits wide; the lowest refused id lies above all of them.
    function test_countingCannotReachARefusedId() public {
        require(uint256(0x00f87d) << 232 > type(uint64).max, "far apart");
        vm.store(address(registry), bytes32(uint256(2)), bytes32(uint256(type(uint64).max)));
        (bool success,) = attempt(issuer, abi.encodeCall(registry.mint, (maker, METADATA)));
        require(!success, "the counter does not wrap");
        does(issuer, abi.encodeCall(registry.mintWithId, (maker, uint256(type(uint64).max) + 1, METADATA)));
        require(registry.ownerOf(uint256(type(uint64).max) + 1) == maker, "importers may go on");
    }

    /// ISSUER alone mints and replaces a metadata hash: an account with every other role may do neither.
    function test_onlyAnIssuerMints() public {
        bytes[4] memory calls = [
            abi.encodeCall(registry.mint, (maker, METADATA)),
            abi.encodeCall(registry.mintBatch, (maker, new bytes32[](1))),
            abi.encodeCall(registry.mintWithId, (maker, 5, METADATA)),
            abi.encodeCall(registry.setMetadataHash, (mint(), METADATA))
        ];
        address[9] memory others =
            [admin, binder, qa, attester, guardian, recycler, warden, maker, stranger];
        for (uint256 i = 0; i < calls.length; ++i) {
            for (uint256 j = 0; j < others.length; ++j) fails(others[j], calls[i], lacks(others[j], ISSUER));
        }
        require(registry.totalSupply() == 1, "nothing was minted");
    }

    function test_onlyTheAdminMovesDocuments() public {
        bytes[2] memory calls = [
            abi.encodeCall(registry.setTokenBaseURI, ("https://example.net/")),
            abi.encodeCall(registry.setContractURI, ("https://example.net/"))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            fails(issuer, calls[i], lacks(issuer, 0));
            fails(stranger, calls[i], lacks(stranger, 0));
            does(admin, calls[i]);
        }
    }

    function test_needsAnOwner() public {
        bytes memory reason = abi.encodeWithSelector(IAssetRegistry.ZeroAddress.selector);
        fails(issuer, abi.encodeCall(registry.mint, (address(0), METADATA)), reason);
        fails(issuer, abi.encodeCall(registry.mintBatch, (address(0), new bytes32[](1))), reason);
        fails(issuer, abi.encodeCall(registry.mintWithId, (address(0), 5, METADATA)), reason);
    }

    function testFuzz_metadataHashUntilClaimed(uint8 pick, bytes32 hash) public {
        uint8 state = 1 + (pick % 6);
        uint256 tokenId = tokenIn(state);
        uint256 word = wordOf(tokenId);
        bytes memory call_ = abi.encodeCall(registry.setMetadataHash, (tokenId, hash));
        if (state <= 3) {
            does(issuer, call_);
            require(registry.metadataHash(tokenId) == hash, "replaced");
        } else {
            fails(issuer, call_, because(IAssetRegistry.WrongState.selector, tokenId, state));
            require(registry.metadataHash(tokenId) == METADATA, "fixed");
        }
        require(wordOf(tokenId) == word, "the record stays");
    }

    /// A commitment serves one token for ever, whatever becomes of it.
    function testFuzz_tagsAreNeverReused(bytes32 tagHash, uint8 fate) public {
        vm.assume(tagHash != 0);
        uint256 first = mint();
        does(binder, abi.encodeCall(registry.bindTag, (first, tagHash)));
        if (fate % 3 >= 1) does(guardian, abi.encodeCall(registry.flag, (first, 0x04, REASON)));
        if (fate % 3 >= 2) does(warden, abi.encodeCall(registry.recycle, (first)));
        uint256 second = mint();
        fails(
            binder,
            abi.encodeCall(registry.bindTag, (second, tagHash)),
            abi.encodeWithSelector(IAssetRegistry.TagTaken.selector, tagHash, first)
        );
        fails(
            binder,
            abi.encodeCall(registry.bindTag, (first, keccak256("another"))),
            because(IAssetRegistry.WrongState.selector, first, stateOf(first))
        );
        require(registry.getTokenByTag(tagHash) == first && registry.getTagByToken(first) == tagHash, "unchanged");
    }

    function test_zeroIsNoTag() public {
        bytes memory reason = abi.encodeWithSelector(IAssetRegistry.ZeroTag.selector);
        fails(binder, abi.encodeCall(registry.bindTag, (mint(), bytes32(0))), reason);
    }

    function refused(uint256 tokenId) private {
        fails(
            issuer,
            abi.encodeCall(registry.mintWithId, (maker, tokenId, METADATA)),
            because(IAssetRegistry.TokenIdRefused.selector, tokenId)
        );
        require(wordOf(tokenId) == 0, "nothing was written");
    }

    /// The same rule in other words: byte by byte.
    function guarded(uint256 tokenId) private pure returns (bool) {
        bytes32 id = bytes32(tokenId);
        bool typed = uint8(id[0]) < 0x80 && id[1] == 0xf8 && id[2] == 0x7d;
        bool untyped = id[0] == 0xf8 && id[1] == 0x7e;
        return tokenId == 0 || typed || untyped;
    }
}
