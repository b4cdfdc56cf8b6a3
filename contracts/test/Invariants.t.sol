// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Handler} from "./Handler.sol";

/// The laws of the contract hold after any number of steps of any kind.
/// A life is one fuzz run. Forge's invariant runner would spend most of the time between the steps (decisions/0033).
contract InvariantsTest is Handler {
    uint256 private constant STEPS = 128;

    /// The laws hold for a token after each of its steps. At the end of a life they hold for all tokens and the counts.
    function testFuzz_everyRecordAndCountKeepsTheRules(uint256 seed) external {
        live(seed);
    }

    /// Some lives by fixed seeds, so that the handler is known to reach what the laws speak of.
    function test_handlerReachesEveryKindOfStep() external {
        for (uint256 seed = 0; seed < 64; ++seed) {
            begin();
            // A call of its own has a memory of its own.
            this.testFuzz_everyRecordAndCountKeepsTheRules(seed);
        }
        for (uint256 kind = 0; kind <= NOTICE; ++kind) require(done[kind] > 0, string.concat("never went through: kind ", vm.toString(kind)));
    }

    function live(uint256 seed) private {
        for (uint256 i = 0; i < STEPS; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint256 id = step(uint8(seed), uint8(seed >> 8), seed >> 64, uint8(seed >> 16), uint16(seed >> 24));
            if (id != 0) checkRecord(id);
        }
        checkRest();
        checkReads();
        checkCounts();
    }

    function checkRecord(uint256 id) private view {
        uint256 word = wordOf(id);
        checkWord(id, word);
        checkTag(id, word);
        (address to,,) = registry.pendingTransfer(id);
        require(to == address(0) || uint8(word >> 224) != 6, "nothing is pending at the end");
    }

    function checkReads() private view {
        uint256[] memory words = registry.getAssets(ids);
        (uint256[] memory records, bytes32[] memory hashes) = registry.getAssetsWithMetadata(ids);
        for (uint256 i = 0; i < ids.length; ++i) {
            checkRecord(ids[i]);
            require(words[i] == wordOf(ids[i]), "slot 3");
            require(records[i] == words[i] && hashes[i] == registry.metadataHash(ids[i]), "reads agree");
        }
    }

    function checkCounts() private view {
        address[12] memory accounts = people();
        uint256 sum;
        for (uint256 i = 0; i < accounts.length; ++i) {
            uint256 owned;
            for (uint256 j = 0; j < ids.length; ++j) if (registry.ownerOf(ids[j]) == accounts[i]) ++owned;
            require(registry.balanceOf(accounts[i]) == owned, "a balance is what one owns");
            sum += owned;
        }
        require(sum == ids.length && registry.totalSupply() == ids.length, "nothing is lost or burned");
    }

    function checkWord(uint256 id, uint256 word) private view {
        (address holder, uint64 time, uint8 state, uint8 flags, uint16 reserved) = registry.getAsset(id);
        uint256 packed = uint160(holder) | (uint256(time) << 160) | (uint256(state) << 224) | (uint256(flags) << 232)
            | (uint256(reserved) << 240);
        require(packed == word, "getAsset is the word");
        require(holder != address(0) && state >= 1 && state <= 6 && flags < 0x40, "in range");
        if (state == 6) return;
        require((flags & 0x1f != 0) == (state == 5), "a report bit exactly when FLAGGED");
        require(state == 5 ? reserved >= 2 && reserved <= 4 : reserved == 0, "remembers only while FLAGGED");
    }

    function checkTag(uint256 id, uint256 word) private view {
        bytes32 tag = registry.getTagByToken(id);
        uint8 state = uint8(word >> 224);
        require(state == 6 || (tag != 0) == (state >= 2), "a tag from BOUND on");
        if (tag == 0) return;
        (uint256 found, uint256 record, bytes32 hash) = registry.getAssetByTag(tag);
        require(found == id && record == word && hash == registry.metadataHash(id), "the tag leads to its token");
        require(registry.getTokenByTag(tag) == id, "both ways");
    }
}
