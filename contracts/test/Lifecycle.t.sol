// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {NONE, MINTED, BOUND, ACTIVATED, CLAIMED, FLAGGED, RECYCLED} from "../src/Lifecycle.sol";
import {World} from "./World.sol";

/// Tries every step, from every state, by every kind of caller (spec §3). A step that the lifecycle table allows happens; all others
/// revert and leave no trace. The table stands here a second time, written in another way than the contract's.
contract LifecycleTest is World {
    enum Step {
        MintThis,
        SetMetadata,
        BindTag,
        Activate,
        Claim,
        Initiate,
        Accept,
        Cancel,
        Restock,
        Flag,
        Resolve,
        Recycle,
        RecycleBySig,
        Announce,
        Invalidate
    }

    struct Case {
        uint8 state;
        uint8 before;
        address holder;
        uint8 flags;
        bool offered;
    }

    address private buyer = person("buyer");
    uint256 private allowed;
    uint256 private freeId = 1_000;

    function test_none() public {
        explore(Case(NONE, 0, address(0), 0, false), 1);
    }

    function test_minted() public {
        explore(Case(MINTED, 0, maker, 0, false), 6);
        explore(Case(MINTED, 0, maker, 0, true), 8);
    }

    function test_bound() public {
        explore(Case(BOUND, 0, maker, 0, false), 23);
        explore(Case(BOUND, 0, maker, 0x20, true), 25);
    }

    function test_activated() public {
        explore(Case(ACTIVATED, 0, maker, 0, false), 35);
        explore(Case(ACTIVATED, 0, maker, 0x20, true), 37);
    }

    function test_claimed() public {
        explore(Case(CLAIMED, 0, owner, 0, false), 24);
        explore(Case(CLAIMED, 0, owner, 0x20, true), 26);
        explore(Case(CLAIMED, 0, issuer, 0, true), 27);
    }

    function test_flaggedWhenBound() public {
        explore(Case(FLAGGED, BOUND, maker, 0x04, false), 19);
        explore(Case(FLAGGED, BOUND, maker, 0x2b, true), 21);
    }

    function test_flaggedWhenActivated() public {
        explore(Case(FLAGGED, ACTIVATED, maker, 0x01, false), 19);
        explore(Case(FLAGGED, ACTIVATED, maker, 0x1f, true), 21);
    }

    function test_flaggedWhenClaimed() public {
        explore(Case(FLAGGED, CLAIMED, owner, 0x01, false), 22);
        explore(Case(FLAGGED, CLAIMED, owner, 0x06, true), 24);
        explore(Case(FLAGGED, CLAIMED, issuer, 0x3f, false), 22);
    }

    function test_recycled() public {
        explore(Case(RECYCLED, MINTED, maker, 0, true), 0);
        explore(Case(RECYCLED, CLAIMED, owner, 0x20, false), 0);
        explore(Case(RECYCLED, FLAGGED, owner, 0x04, false), 0);
    }

    /// `expectedAllowed` pins how many of the combinations go through, so that an empty walk cannot pass.
    function explore(Case memory c, uint256 expectedAllowed) private {
        allowed = 0;
        uint256 tokenId = build(c);
        address[13] memory callers = [
            admin, issuer, binder, qa, attester, guardian, recycler, warden, maker, owner, recipient, buyer, stranger
        ];
        for (uint256 i = 0; i < callers.length; ++i) {
            for (uint8 step = 0; step <= uint8(type(Step).max); ++step) {
                bool takesBits = step == uint8(Step.Flag) || step == uint8(Step.Resolve);
                // 0x00 and 0x40 have no meaning and must be refused to everybody.
                bytes memory choices = takesBits ? bytes(hex"0001020304050810182021243f40") : bytes(hex"00");
                for (uint256 j = 0; j < choices.length; ++j) {
                    if (tryStep(c, tokenId, Step(step), uint8(choices[j]), callers[i])) tokenId = build(c);
                }
            }
        }
        require(allowed == expectedAllowed, string.concat("allowed steps: ", decimal(allowed)));
    }

    function tryStep(Case memory c, uint256 tokenId, Step step, uint8 bits, address caller) private returns (bool) {
        bytes32 trace = traceOf(tokenId);
        (bool success, bytes memory result) = attempt(caller, callOf(step, tokenId, bits, caller));
        (bool may, uint8 next) = table(c, step, bits, caller);
        require(success == may, may ? "should have been allowed" : "should have been refused");
        if (!success) {
            require(result.length >= 4 && bytes4(result) != 0x4e487b71, "refused without naming a reason");
            require(traceOf(tokenId) == trace, "a refused step left a trace");
            return false;
        }
        ++allowed;
        require(stateOf(tokenId) == next, "another state than the table's");
        checkRest(c, tokenId, step, bits);
        return true;
    }

    /// Owner, flags and remembered state after an allowed step.
    function checkRest(Case memory c, uint256 tokenId, Step step, uint8 bits) private view {
        address holder = step == Step.MintThis ? maker : step == Step.Claim ? owner : step == Step.Accept ? recipient : c.holder;
        uint8 flags = step == Step.Flag ? c.flags | bits : step == Step.Resolve ? c.flags & ~bits : c.flags;
        uint256 word = wordOf(tokenId);
        require(address(uint160(word)) == holder, "owner");
        require(flagsOf(tokenId) == flags, "flags");
        uint8 before = c.state == FLAGGED ? c.before : c.state;
        bool remembers = stateOf(tokenId) == FLAGGED || (step == Step.Recycle && c.state == FLAGGED);
        require(uint16(word >> 240) == (remembers ? before : 0), "reserved");
        (address to,,) = registry.pendingTransfer(tokenId);
        bool dropped = step == Step.Claim || step == Step.Accept || step == Step.Cancel || step == Step.Restock
            || step == Step.Recycle || step == Step.RecycleBySig || step == Step.Invalidate;
        address expected = step == Step.Initiate ? buyer : c.offered && !dropped ? recipient : address(0);
        require(to == expected, "pending transfer");
    }

    function table(Case memory c, Step step, uint8 bits, address caller) private view returns (bool, uint8) {
        bool open = c.state >= MINTED && c.state <= CLAIMED;
        if (step == Step.MintThis) return (c.state == NONE && caller == issuer, MINTED);
        if (step == Step.SetMetadata) return (open && c.state != CLAIMED && caller == issuer, c.state);
        if (step == Step.BindTag) return (c.state == MINTED && caller == binder, BOUND);
        if (step == Step.Activate) return (c.state == BOUND && caller == qa, ACTIVATED);
        if (step == Step.Claim) return (c.state == ACTIVATED, CLAIMED);
        if (step == Step.Initiate) return (open && caller == c.holder && !c.offered, c.state);
        if (step == Step.Accept) return (open && c.offered && caller == recipient, c.state);
        if (step == Step.Cancel) {
            bool party = caller == c.holder || caller == recipient;
            return ((open || c.state == FLAGGED) && c.offered && party, c.state);
        }
        if (step == Step.Invalidate) return ((open || c.state == FLAGGED) && caller == c.holder, c.state);
        if (step == Step.Announce) {
            return (c.state == FLAGGED && c.before == CLAIMED && caller == warden, c.state);
        }
        if (step == Step.Restock) return (c.state == CLAIMED && caller == issuer && c.holder == issuer, ACTIVATED);
        if (step == Step.Flag) return flagRow(c, bits, caller);
        if (step == Step.Resolve) return resolveRow(c, bits, caller);
        if (step == Step.Recycle) return (recycleRow(c, caller), RECYCLED);
        if (step == Step.RecycleBySig) return (c.state == CLAIMED && caller == c.holder, RECYCLED);
        return (false, 0);
    }

    function flagRow(Case memory c, uint8 bits, address caller) private view returns (bool, uint8) {
        bool flaggable = c.state == BOUND || c.state == ACTIVATED || c.state == CLAIMED || c.state == FLAGGED;
        bool news = c.flags | bits != c.flags;
        return (flaggable && news && mayTouch(c, bits, caller), bits & 0x1f != 0 ? FLAGGED : c.state);
    }

    function resolveRow(Case memory c, uint8 bits, address caller) private view returns (bool, uint8) {
        bool set = bits & c.flags == bits && c.state != RECYCLED;
        bool last = c.state == FLAGGED && (c.flags & ~bits) & 0x1f == 0;
        return (set && mayTouch(c, bits, caller), last ? c.before : c.state);
    }

    function mayTouch(Case memory c, uint8 bits, address caller) private view returns (bool) {
        if (bits == 0 || bits > 0x3f) return false;
        if (bits & 0x20 != 0 && caller != attester) return false;
        if (bits & 0x1f == 0 || caller == guardian || caller == warden) return true;
        bool claimed = c.state == CLAIMED || (c.state == FLAGGED && c.before == CLAIMED);
        return claimed && caller == c.holder && bits & 0x1c == 0;
    }

    function recycleRow(Case memory c, address caller) private view returns (bool) {
        if (c.state == CLAIMED) return caller == c.holder;
        // A claimed item needs an announcement first.
        if (c.state == FLAGGED) return caller == warden && c.before != CLAIMED;
        bool early = c.state == MINTED || c.state == BOUND || c.state == ACTIVATED;
        return early && (caller == recycler || caller == warden);
    }

    function callOf(Step step, uint256 tokenId, uint8 bits, address caller) private view returns (bytes memory) {
        if (step == Step.MintThis) return abi.encodeCall(registry.mintWithId, (maker, tokenId, METADATA));
        if (step == Step.SetMetadata) return abi.encodeCall(registry.setMetadataHash, (tokenId, keccak256("new")));
        if (step == Step.BindTag) return abi.encodeCall(registry.bindTag, (tokenId, keccak256(abi.encode(tokenId))));
        if (step == Step.Activate) return abi.encodeCall(registry.activate, (tokenId));
        if (step == Step.Claim) return claimCall(tokenId, owner);
        if (step == Step.Initiate) {
            return abi.encodeCall(registry.initiateTransfer, (tokenId, buyer, uint64(START + 1 days), REASON));
        }
        if (step == Step.Accept) return abi.encodeCall(registry.acceptTransfer, (tokenId));
        if (step == Step.Cancel) return abi.encodeCall(registry.cancelTransfer, (tokenId));
        if (step == Step.Restock) return abi.encodeCall(registry.restock, (tokenId));
        if (step == Step.Flag) return abi.encodeCall(registry.flag, (tokenId, bits, REASON));
        if (step == Step.Resolve) return abi.encodeCall(registry.resolve, (tokenId, bits, REASON));
        if (step == Step.Recycle) return abi.encodeCall(registry.recycle, (tokenId));
        if (step == Step.Announce) return abi.encodeCall(registry.announceRecycle, (tokenId));
        if (step == Step.Invalidate) return abi.encodeCall(registry.invalidateNonce, (tokenId));
        bytes32 hash = recycleHash(tokenId, caller, nonceOf(tokenId), START + 60);
        return abi.encodeCall(registry.recycleBySig, (tokenId, START + 60, signed(caller, hash)));
    }

    /// A new token as the case says; the id of an unminted one for NONE.
    function build(Case memory c) private returns (uint256 tokenId) {
        if (c.state == NONE) return ++freeId;
        uint8 base = c.state < FLAGGED ? c.state : c.before < FLAGGED ? c.before : CLAIMED;
        tokenId = tokenIn(base, 0, c.holder);
        if (c.offered) offer(tokenId);
        if (c.flags & 0x20 != 0) does(attester, abi.encodeCall(registry.flag, (tokenId, 0x20, REASON)));
        if (c.flags & 0x1f != 0) does(guardian, abi.encodeCall(registry.flag, (tokenId, c.flags & 0x1f, REASON)));
        if (c.state != RECYCLED) return tokenId;
        address caller = base == CLAIMED && c.before != FLAGGED ? c.holder : warden;
        if (base == CLAIMED && c.before == FLAGGED) recycleAfterNotice(tokenId);
        else does(caller, abi.encodeCall(registry.recycle, (tokenId)));
    }

    function traceOf(uint256 tokenId) private view returns (bytes32) {
        (address to, uint64 expiry, uint32 nonce) = registry.pendingTransfer(tokenId);
        return keccak256(
            abi.encode(
                wordOf(tokenId),
                registry.getTagByToken(tokenId),
                registry.metadataHash(tokenId),
                to,
                expiry,
                nonce,
                registry.totalSupply()
            )
        );
    }

    function decimal(uint256 value) private pure returns (string memory) {
        if (value < 10) return string(abi.encodePacked(bytes1(uint8(48 + value))));
        return string.concat(decimal(value / 10), decimal(value % 10));
    }
}
