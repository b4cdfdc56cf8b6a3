// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AssetRegistry} from "../src/AssetRegistry.sol";
import {Handler} from "./Handler.sol";
import {Vm} from "./World.sol";

/// What holds after any number of any steps, for every token at once.
contract InvariantsTest {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    Handler private handler;
    AssetRegistry private registry;
    mapping(uint256 kind => uint256) private reached;

    function setUp() public {
        handler = new Handler();
        registry = handler.target();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](1);
        selectors[0] = Handler.step.selector;
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    /// One function, because forge lives a whole set of lives for each.
    function invariant_everyRecordAndCountKeepsTheRules() external view {
        uint256[] memory ids = handler.tokens();
        checkRecords(ids);
        checkCounts(ids);
    }

    /// One long life by hand, so that the handler is known to reach what the invariants speak of.
    function test_handlerReachesEveryKindOfStep() external {
        uint256 seed = 1;
        for (uint256 i = 0; i < 1_500; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            handler.step(uint8(seed), uint8(seed >> 8), seed >> 64, uint8(seed >> 16), uint16(seed >> 24));
            if (i % 150 == 149) {
                counted();
                setUp();
            }
        }
        for (uint256 kind = 0; kind < 16; ++kind) require(reached[kind] > 0, "a kind of step never went through");
    }

    function counted() private {
        for (uint256 kind = 0; kind < 16; ++kind) reached[kind] += handler.done(kind);
    }

    function checkRecords(uint256[] memory ids) private view {
        uint256[] memory words = registry.getAssets(ids);
        (uint256[] memory records, bytes32[] memory hashes) = registry.getAssetsWithMetadata(ids);
        for (uint256 i = 0; i < ids.length; ++i) {
            uint256 word = words[i];
            require(word == uint256(vm.load(address(registry), keccak256(abi.encode(ids[i], uint256(3))))), "slot 3");
            require(records[i] == word && hashes[i] == registry.metadataHash(ids[i]), "reads agree");
            checkWord(ids[i], word);
            checkTag(ids[i], word);
            (address to,,) = registry.pendingTransfer(ids[i]);
            require(to == address(0) || uint8(word >> 224) != 6, "nothing is pending at the end");
        }
    }

    function checkCounts(uint256[] memory ids) private view {
        address[12] memory people = handler.people();
        uint256 sum;
        for (uint256 i = 0; i < people.length; ++i) {
            uint256 owned;
            for (uint256 j = 0; j < ids.length; ++j) if (registry.ownerOf(ids[j]) == people[i]) ++owned;
            require(registry.balanceOf(people[i]) == owned, "a balance is what one owns");
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
