// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAssetRegistry} from "../src/IAssetRegistry.sol";
import {CLAIMED, FLAGGED, ATTESTER} from "../src/Lifecycle.sol";
import {World} from "./World.sol";

/// Reports and their end: what flagging changes, resolving restores, and no owner undoes an authority's word.
contract FlagsTest is World {
    /// Everything but the time comes back, whatever was reported in whatever order and with or without tampering.
    function testFuzz_resolvingRestoresTheRecord(uint8 pick, uint8 bits, uint8 order, bool tampered) public {
        bits = 1 + (bits % 0x1f);
        uint256 tokenId = tokenIn(2 + (pick % 3));
        if (tampered) does(attester, abi.encodeCall(registry.flag, (tokenId, 0x20, REASON)));
        uint256 word = wordOf(tokenId);
        for (uint8 i = 0; i < 5; ++i) {
            uint8 bit = uint8(1 << ((i + order % 5) % 5));
            if (bits & bit != 0) does(guardian, abi.encodeCall(registry.flag, (tokenId, bit, REASON)));
        }
        require(stateOf(tokenId) == FLAGGED && flagsOf(tokenId) & 0x1f == bits, "flagged");
        require(uint16(wordOf(tokenId) >> 240) == uint8(word >> 224), "remembers the state");
        vm.warp(START + 5);
        for (uint8 i = 0; i < 5; ++i) {
            uint8 bit = uint8(1 << ((i + order / 5 % 5) % 5));
            if (bits & bit != 0) does(guardian, abi.encodeCall(registry.resolve, (tokenId, bit, REASON)));
        }
        uint256 time = uint256(type(uint64).max) << 160;
        require(wordOf(tokenId) & ~time == word & ~time, "owner, state, flags and reserved as before");
        require(wordOf(tokenId) & time == (START + 5) << 160, "at the time of the last step");
    }

    /// No call of an owner clears the bits of an authority, or FLAGGED.
    function testFuzz_ownersCannotClearAuthorityBits(uint8 authority, uint8 own, uint8[8] calldata tries) public {
        authority = (1 + authority % 7) << 2;
        uint256 tokenId = tokenIn(CLAIMED);
        if (own & 3 != 0) does(owner, abi.encodeCall(registry.flag, (tokenId, own & 3, REASON)));
        does(guardian, abi.encodeCall(registry.flag, (tokenId, authority, REASON)));
        for (uint256 i = 0; i < tries.length; ++i) {
            attempt(owner, abi.encodeCall(registry.resolve, (tokenId, tries[i], REASON)));
            attempt(owner, abi.encodeCall(registry.flag, (tokenId, tries[i] ^ 0xff, REASON)));
            attempt(owner, abi.encodeCall(registry.recycle, (tokenId)));
            require(stateOf(tokenId) == FLAGGED && flagsOf(tokenId) & 0x3c == authority, "still reported");
        }
    }

    function test_sayWhatIsWrong() public {
        uint256 tokenId = tokenIn(CLAIMED);
        bytes4 notAllowed = IAssetRegistry.FlagsNotAllowed.selector;
        fails(owner, flagCall(tokenId, 0x04), abi.encodeWithSelector(notAllowed, owner, uint8(0x04)));
        fails(owner, flagCall(tokenId, 0x05), abi.encodeWithSelector(notAllowed, owner, uint8(0x05)));
        fails(stranger, flagCall(tokenId, 0x01), abi.encodeWithSelector(notAllowed, stranger, uint8(0x01)));
        fails(guardian, flagCall(tokenId, 0x20), lacks(guardian, ATTESTER));
        fails(guardian, flagCall(tokenId, 0), because(IAssetRegistry.InvalidFlags.selector, 0));
        fails(guardian, flagCall(tokenId, 0x40), because(IAssetRegistry.InvalidFlags.selector, 0x40));
        fails(guardian, flagCall(99, 0x01), because(IAssetRegistry.AssetNotFound.selector, 99));
        does(owner, flagCall(tokenId, 0x01));
        fails(owner, flagCall(tokenId, 0x01), because(IAssetRegistry.FlagsAlreadySet.selector, tokenId, 0x01));
        fails(
            owner,
            abi.encodeCall(registry.resolve, (tokenId, 0x03, REASON)),
            because(IAssetRegistry.FlagsNotSet.selector, tokenId, 0x03)
        );
        uint256 minted = mint();
        fails(guardian, flagCall(minted, 0x01), because(IAssetRegistry.WrongState.selector, minted, 1));
    }

    /// An owner who is an attester too may report its item and mark it at once.
    function test_anOwnerWhoAttestsReportsAndMarks() public {
        uint256 tokenId = tokenIn(CLAIMED);
        does(admin, abi.encodeCall(registry.grantRole, (ATTESTER, owner)));
        does(owner, flagCall(tokenId, 0x21));
        require(flagsOf(tokenId) == 0x21 && stateOf(tokenId) == FLAGGED, "both");
        bytes4 notAllowed = IAssetRegistry.FlagsNotAllowed.selector;
        fails(owner, flagCall(tokenId, 0x24), abi.encodeWithSelector(notAllowed, owner, uint8(0x24)));
    }

    /// A reported item is recycled only by an account that has both roles.
    function test_reportsCannotBeRecycledAway() public {
        uint256 tokenId = tokenIn(FLAGGED);
        bytes memory call_ = abi.encodeCall(registry.recycle, (tokenId));
        fails(recycler, call_, lacks(recycler, registry.GUARDIAN_ROLE()));
        fails(guardian, call_, lacks(guardian, registry.RECYCLER_ROLE()));
        fails(owner, call_, lacks(owner, registry.RECYCLER_ROLE()));
        recycleAfterNotice(tokenId);
        require(stateOf(tokenId) == 6 && flagsOf(tokenId) == 0x04, "recycled, with its history");
        require(registry.ownerOf(tokenId) == owner && registry.getTagByToken(tokenId) != 0, "owner and tag stay");
        fails(recycler, call_, because(IAssetRegistry.WrongState.selector, tokenId, 6));
    }

    function flagCall(uint256 tokenId, uint8 bits) private view returns (bytes memory) {
        return abi.encodeCall(registry.flag, (tokenId, bits, REASON));
    }
}
