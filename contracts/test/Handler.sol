// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CLAIMED, FLAGGED, RECYCLED, SHARED_IDS, COUNTED_IDS} from "../src/Lifecycle.sol";
import {Vm, World} from "./World.sol";

/// Takes one random step of a life: any call, on any token, mostly by an account that may make it. It compares the token with before; a
/// broken law reverts, which fails the run. A change of another token is found when that token has its next
/// step, or at the end of the life (checkRest).
abstract contract Handler is World {
    struct Trace {
        uint256 word;
        bytes32 tag;
        bytes32 metadata;
        address to;
        uint64 expiry;
        uint32 nonce;
        uint64 notBefore;
    }

    uint256 private constant MOST_TOKENS = 4;
    uint256 internal constant KINDS = 16;
    /// Counts the recyclings of a customer's reported item after its notice, beside the kinds.
    uint256 internal constant NOTICE = KINDS;
    uint256[] internal ids;
    /// Steps that went through, by kind: a run in which nothing happens proves nothing.
    mapping(uint256 kind => uint256) internal done;
    /// Hash of the trace of a token after its last step.
    mapping(uint256 id => bytes32) private left;
    /// Calls with signatures that went through.
    bytes[] private used;

    function people() internal view returns (address[12] memory) {
        return [
            admin, issuer, binder, qa, attester, guardian, recycler, warden, maker, owner, recipient, stranger
        ];
    }

    /// Begins a life with a registry of its own.
    function begin() internal {
        setUp();
        delete ids;
        delete used;
    }

    /// Returns the token of the step, or 0 where a mint was refused.
    function step(uint8 kind, uint8 who, uint256 pick, uint8 bits, uint16 wait) internal returns (uint256 id) {
        // Mostly seconds, sometimes days, and now and then more than the notice of a recycling.
        vm.warp(block.timestamp + (wait % 64 == 1 ? 31 days : wait % 8 == 0 ? uint256(wait) * 10 : wait % 60));
        kind = uint8(kind % KINDS);
        if (ids.length == 0 || (kind == 0 && ids.length < MOST_TOKENS)) return mintOne(pick);
        id = ids[pick % ids.length];
        if (wait & 0x100 != 0) kind = usual(stateOf(id), kind);
        address caller = who % 4 == 0 ? people()[(who / 4) % 12] : rightful(kind, id, bits);
        Trace memory before = traceOf(id);
        require(hashOf(before) == left[id], "a step of another token changed this one");
        vm.recordLogs();
        bytes memory call_ = callOf(kind, id, bits, caller);
        (bool success, bytes memory result) = attempt(caller, call_);
        Trace memory found = traceOf(id);
        bytes32 hash = hashOf(found);
        if (hash != left[id]) {
            require(success && announced(vm.getRecordedLogs(), id), "a change without an event");
            checkChange(kind, caller, before, found);
            left[id] = hash;
            if (uint8(before.word >> 224) == FLAGGED && uint8(found.word >> 224) == RECYCLED && before.notBefore != 0) {
                ++done[NOTICE];
            }
        }
        if (used.length > 0) {
            (bool again,) = attempt(stranger, used[pick % used.length]);
            require(!again, "a used signature works again");
        }
        if (success && (kind == 3 || kind == 11)) used.push(call_);
        require(success || (result.length >= 4 && bytes4(result) != 0x4e487b71), "refused without naming a reason");
        if (success) ++done[kind];
    }

    /// No token has changed since its last step.
    function checkRest() internal view {
        for (uint256 i = 0; i < ids.length; ++i) {
            require(hashOf(traceOf(ids[i])) == left[ids[i]], "a step of another token changed this one");
        }
    }

    function mintOne(uint256 pick) private returns (uint256 id) {
        id = importedId(pick);
        (bool success, bytes memory result) = id == 0
            ? attempt(issuer, abi.encodeCall(registry.mint, (pick % 2 == 0 ? maker : issuer, METADATA)))
            : attempt(issuer, abi.encodeCall(registry.mintWithId, (maker, id, METADATA)));
        if (!success) return 0;
        if (id == 0) {
            id = abi.decode(result, (uint256));
            require(id != 0 && (id < SHARED_IDS || (id >= COUNTED_IDS && id <= type(uint64).max)), "an id of the counter");
        }
        require(!isKnown(id), "an id is minted once");
        ids.push(id);
        left[id] = hashOf(traceOf(id));
        ++done[0];
    }

    /// Two of three mints are counted (0). Imports lie where the counter could meet them, at the bounds, and anywhere.
    function importedId(uint256 pick) private pure returns (uint256) {
        if (pick % 3 != 0) return 0;
        uint256 place = (pick >> 16) % 4;
        uint256 near = (pick >> 32) % 5;
        if (place == 0) return 1 + near;
        if (place == 1) return SHARED_IDS - 2 + near;
        if (place == 2) return COUNTED_IDS - 2 + near;
        return pick;
    }

    function isKnown(uint256 id) private view returns (bool) {
        for (uint256 i = 0; i < ids.length; ++i) if (ids[i] == id) return true;
        return false;
    }

    /// One step may change one token only in these ways.
    function checkChange(uint8 kind, address caller, Trace memory a, Trace memory b) private view {
        require(a.tag == 0 || a.tag == b.tag, "a tag is never rebound");
        bool raised = b.nonce == a.nonce + 1;
        require(raised || b.nonce == a.nonce, "the nonce never falls");
        require(raised || !(kind == 3 || kind == 4 || kind == 7 || kind == 13 || kind == 14), "a used nonce is over");
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
        require(!moved || kind == 3 || (caller == a.to && b.to == address(0)), "and who accepted, once");
        if (from == to) return;
        bool byOwner = caller == address(uint160(a.word));
        require(from != CLAIMED || to == FLAGGED || byOwner, "a claimed item stays what it is but for its owner");
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

    /// Steps that lead on. By chance alone few items are claimed, and fewer of those reported.
    function usual(uint8 state, uint8 kind) private pure returns (uint8) {
        if (state < CLAIMED) return state;
        if (state == CLAIMED) return kind % 3 == 0 ? 8 : kind;
        if (state == FLAGGED) return kind % 4 == 0 ? 15 : kind % 4 == 1 ? 10 : 9;
        return kind;
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
        if (kind == 9) return abi.encodeCall(registry.resolve, (id, flagsOf(id) & (bits % 5 == 0 ? 0x1f : chosen), REASON));
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

    function traceOf(uint256 id) private view returns (Trace memory) {
        (address to, uint64 expiry, uint32 nonce) = registry.pendingTransfer(id);
        (bytes32 tag, bytes32 metadata) = (registry.getTagByToken(id), registry.metadataHash(id));
        return Trace(wordOf(id), tag, metadata, to, expiry, nonce, registry.recyclableFrom(id));
    }

    function hashOf(Trace memory trace) private pure returns (bytes32) {
        return keccak256(abi.encode(trace));
    }
}
