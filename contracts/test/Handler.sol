// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AssetRegistry} from "../src/AssetRegistry.sol";
import {CLAIMED, FLAGGED, RECYCLED} from "../src/Lifecycle.sol";
import {Vm, World} from "./World.sol";

/// Lives at random: any step, on any token, mostly by the one who may and sometimes by anybody.
/// After each step it compares all tokens with before; a broken law reverts, which fails the run.
contract Handler is World {
    struct Trace {
        uint256 word;
        bytes32 tag;
        bytes32 metadata;
        address to;
        uint64 expiry;
        uint32 nonce;
        uint64 notBefore;
    }

    uint256 private constant MOST_TOKENS = 6;
    uint256[] public ids;
    /// Steps that went through, by kind: a run in which nothing happens proves nothing.
    mapping(uint256 kind => uint256) public done;
    /// Calls with signatures that went through.
    bytes[] private used;

    constructor() {
        setUp();
    }

    function target() external view returns (AssetRegistry) {
        return registry;
    }

    function tokens() external view returns (uint256[] memory) {
        return ids;
    }

    function people() public view returns (address[12] memory) {
        return [
            admin, issuer, binder, qa, attester, guardian, recycler, warden, maker, owner, recipient, stranger
        ];
    }

    function step(uint8 kind, uint8 who, uint256 pick, uint8 bits, uint16 wait) external {
        vm.warp(block.timestamp + (wait % 8 == 0 ? uint256(wait) * 10 : wait % 60));
        kind = kind % 16;
        if (ids.length == 0 || (kind == 0 && ids.length < MOST_TOKENS)) return mintOne(pick);
        uint256 id = ids[pick % ids.length];
        address caller = who % 4 == 0 ? people()[(who / 4) % 12] : rightful(kind, id, bits);
        Trace[] memory before = traces();
        vm.recordLogs();
        bytes memory call_ = callOf(kind, id, bits, caller);
        (bool success, bytes memory result) = attempt(caller, call_);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        Trace[] memory found = traces();
        for (uint256 i = 0; i < ids.length; ++i) {
            bool changed = keccak256(abi.encode(before[i])) != keccak256(abi.encode(found[i]));
            require(!changed || (success && ids[i] == id), "another token changed");
            require(!changed || announced(logs, ids[i]), "a change without an event");
            checkChange(kind, caller, before[i], found[i]);
        }
        if (used.length > 0) {
            (bool again,) = attempt(stranger, used[pick % used.length]);
            require(!again, "a used signature works again");
        }
        if (success && (kind == 3 || kind == 11)) used.push(call_);
        require(success || (result.length >= 4 && bytes4(result) != 0x4e487b71), "refused without naming a reason");
        if (success) ++done[kind];
    }

    function mintOne(uint256 pick) private {
        uint256 id = pick % 3 == 0 ? pick : 0;
        (bool success, bytes memory result) = id == 0
            ? attempt(issuer, abi.encodeCall(registry.mint, (pick % 2 == 0 ? maker : issuer, METADATA)))
            : attempt(issuer, abi.encodeCall(registry.mintWithId, (maker, id, METADATA)));
        if (success) ids.push(id == 0 ? abi.decode(result, (uint256)) : id);
        if (success) ++done[0];
    }

    /// What may become of one token in one step.
    function checkChange(uint8 kind, address caller, Trace memory a, Trace memory b) private view {
        require(a.tag == 0 || a.tag == b.tag, "a tag is never rebound");
        require(b.nonce == a.nonce || b.nonce == a.nonce + 1, "the nonce never falls");
        require(b.metadata == a.metadata || uint8(a.word >> 224) <= 3, "the metadata hash is fixed");
        bool offered = b.to != a.to && b.to != address(0);
        require(!offered || caller == address(uint160(a.word)), "only the owner offers");
        if (a.word == b.word) return;
        (uint8 from, uint8 to) = (uint8(a.word >> 224), uint8(b.word >> 224));
        require(from != RECYCLED, "recycled is the end");
        require(uint64(b.word >> 160) == block.timestamp, "stamped with the time of the step");
        bool moved = uint160(a.word) != uint160(b.word);
        require(!moved || kind == 3 || kind == 5, "only a claim or an acceptance moves ownership");
        require(!moved || kind == 3 || address(uint160(b.word)) == a.to, "to the one it was offered to");
        if (from == to) return;
        // Row: from; bit: to.
        uint8[6] memory ways = [0, 0x44, 0x68, 0x70, 0x68, 0x5c];
        require(ways[from] & (1 << to) != 0, "not a way of the lifecycle");
        if (from != FLAGGED) return;
        uint8 held = uint8(a.word >> 240);
        require(to == RECYCLED || to == held, "back to where it was flagged");
        if (to == RECYCLED && held == CLAIMED) require(a.notBefore != 0 && a.notBefore <= block.timestamp, "announced");
        require(to == RECYCLED || b.notBefore == 0, "an announcement ends with the reports");
    }

    function announced(Vm.Log[] memory logs, uint256 id) private pure returns (bool) {
        for (uint256 i = 0; i < logs.length; ++i) {
            bytes32[] memory topics = logs[i].topics;
            if (topics.length > 1 && topics[1] == bytes32(id)) return true;
        }
        return false;
    }

    function rightful(uint8 kind, uint256 id, uint8 bits) private view returns (address) {
        address holder = registry.ownerOf(id);
        (address to,,) = registry.pendingTransfer(id);
        if (kind == 1) return binder;
        if (kind == 2) return qa;
        if (kind == 3) return stranger;
        if (kind == 5) return to == address(0) ? holder : to;
        if (kind == 8 || kind == 9) return bits & 0x20 != 0 ? attester : bits % 3 == 0 ? holder : guardian;
        if (kind == 10) return stateOf(id) == 4 ? holder : warden;
        if (kind == 12) return issuer;
        if (kind == 15) return warden;
        return holder;
    }

    function callOf(uint8 kind, uint256 id, uint8 bits, address caller) private view returns (bytes memory) {
        if (kind == 1) return abi.encodeCall(registry.bindTag, (id, tagOf(bits % 8 == 0 ? 1 : id)));
        if (kind == 2) return abi.encodeCall(registry.activate, (id));
        // Claims use the tag the token has, which need not be its own first choice.
        if (kind == 3) return claimOf(id, bits % 2 == 0 ? owner : issuer);
        if (kind == 14) return abi.encodeCall(registry.invalidateNonce, (id));
        if (kind == 15) return abi.encodeCall(registry.announceRecycle, (id));
        if (kind == 4 || kind == 13) return offerOf(id, bits % 2 == 0 ? recipient : owner);
        if (kind == 5) return abi.encodeCall(registry.acceptTransfer, (id));
        if (kind == 6) return abi.encodeCall(registry.cancelTransfer, (id));
        if (kind == 7) return abi.encodeCall(registry.restock, (id));
        uint8 chosen = bits & 0x20 != 0 ? 0x20 : bits % 3 == 0 ? 1 + bits % 2 : bits & 0x1f;
        if (kind == 8) return abi.encodeCall(registry.flag, (id, chosen, REASON));
        if (kind == 9) return abi.encodeCall(registry.resolve, (id, flagsOf(id) & chosen, REASON));
        // Rarely, or most lives would be short.
        if (kind == 10 && bits % 4 == 0) return abi.encodeCall(registry.recycle, (id));
        if (kind == 10) return abi.encodeCall(registry.resolve, (id, flagsOf(id) & 0x1f, REASON));
        if (kind == 12) return abi.encodeCall(registry.setMetadataHash, (id, keccak256(abi.encode(bits))));
        bytes32 hash = recycleHash(id, caller, nonceOf(id), block.timestamp);
        return abi.encodeCall(registry.recycleBySig, (id, block.timestamp, signed(caller, hash)));
    }

    function offerOf(uint256 id, address to) private view returns (bytes memory) {
        return abi.encodeCall(registry.initiateTransfer, (id, to, uint64(block.timestamp + 1 hours), REASON));
    }

    function claimOf(uint256 id, address claimant) private view returns (bytes memory) {
        uint256 deadline = block.timestamp;
        bytes32 attested = claimHash(id, claimant, registry.getTagByToken(id), 7, nonceOf(id), deadline);
        bytes memory consent = signed(claimant, consentHash(id, claimant, nonceOf(id), deadline));
        return claimCall(id, claimant, deadline, signed(attester, attested), consent);
    }

    function traces() private view returns (Trace[] memory found) {
        found = new Trace[](ids.length);
        for (uint256 i = 0; i < found.length; ++i) {
            uint256 id = ids[i];
            (address to, uint64 expiry, uint32 nonce) = registry.pendingTransfer(id);
            (bytes32 tag, bytes32 metadata) = (registry.getTagByToken(id), registry.metadataHash(id));
            found[i] = Trace(wordOf(id), tag, metadata, to, expiry, nonce, registry.recyclableFrom(id));
        }
    }
}
