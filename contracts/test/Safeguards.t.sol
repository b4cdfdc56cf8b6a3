// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AttestationVerifier} from "../src/AttestationVerifier.sol";
import {IAssetRegistry} from "../src/IAssetRegistry.sol";
import {ACTIVATED, CLAIMED, FLAGGED, RECYCLED, ISSUER, GUARDIAN, RECYCLER} from "../src/Lifecycle.sol";
import {Vm, World} from "./World.sol";

/// The seven ways in which one key could do lasting harm in version 1, each refused or undone in time.
contract SafeguardsTest is World {
    bytes32 private constant ADMIN = 0;
    uint256 private constant ADMIN_DELAY = 3 days;
    uint256 private constant RECYCLE_DELAY = 30 days;
    address private thief = person("thief");

    // 1. One transaction gave the contract away.

    function test_theAdminChangesInTwoDelayedSteps() public {
        refuses(admin, abi.encodeCall(registry.grantRole, (ADMIN, thief)));
        refuses(admin, abi.encodeCall(registry.revokeRole, (ADMIN, admin)));
        does(admin, abi.encodeWithSignature("beginDefaultAdminTransfer(address)", recipient));
        refuses(recipient, abi.encodeWithSignature("acceptDefaultAdminTransfer()"));
        vm.warp(START + ADMIN_DELAY);
        refuses(recipient, abi.encodeWithSignature("acceptDefaultAdminTransfer()"));
        vm.warp(START + ADMIN_DELAY + 1);
        refuses(thief, abi.encodeWithSignature("acceptDefaultAdminTransfer()"));
        require(registry.hasRole(ADMIN, admin), "the old admin stays until the new one accepts");
        does(recipient, abi.encodeWithSignature("acceptDefaultAdminTransfer()"));
        require(registry.hasRole(ADMIN, recipient) && !registry.hasRole(ADMIN, admin), "one admin at any time");
    }

    function test_anAdminTransferIsCancelledInTime() public {
        does(admin, abi.encodeWithSignature("beginDefaultAdminTransfer(address)", thief));
        does(admin, abi.encodeWithSignature("cancelDefaultAdminTransfer()"));
        vm.warp(START + ADMIN_DELAY + 1);
        refuses(thief, abi.encodeWithSignature("acceptDefaultAdminTransfer()"));
        require(registry.hasRole(ADMIN, admin) && !registry.hasRole(ADMIN, thief), "nothing changed");
    }

    // 2. One transaction left the contract, or the verifier, without anybody who names its keys.

    function test_theAdminCannotRenounceIntoNothing() public {
        refuses(admin, abi.encodeCall(registry.renounceRole, (ADMIN, admin)));
        refuses(admin, abi.encodeWithSignature("beginDefaultAdminTransfer(address)", address(0)));
        vm.warp(START + ADMIN_DELAY + 1);
        refuses(admin, abi.encodeCall(registry.renounceRole, (ADMIN, admin)));
        does(admin, abi.encodeCall(registry.grantRole, (ISSUER, stranger)));
        does(stranger, abi.encodeCall(registry.renounceRole, (ISSUER, stranger)));
        require(!registry.hasRole(ISSUER, stranger), "other roles are given back as before");
    }

    function test_theVerifierKeepsAnOwner() public {
        AttestationVerifier verifier = new AttestationVerifier(admin, 84532, address(registry));
        vm.prank(admin);
        (bool success,) = address(verifier).call(abi.encodeWithSignature("renounceOwnership()"));
        require(!success && verifier.owner() == admin, "the owner stays");
    }

    // 3. An import in falling order made every later mint walk over all of its ids.

    function test_anImportDoesNotMakeMintingExpensive() public {
        for (uint256 id = 5_000; id > 0; --id) {
            does(issuer, abi.encodeCall(registry.mintWithId, (maker, id, METADATA)));
        }
        uint256 start = gasleft();
        uint256 next = mint();
        require(start - gasleft() < 150_000, "a mint costs what it costs without an import");
        require(next == 5_001, "after the highest imported id");
    }

    /// The counter passes by imports below 2^40 in one step; then it goes on where importers cannot mint.
    function test_noImportExhaustsTheCounter() public {
        uint256[4] memory imports = [uint256(1 << 40), 9, 4, (1 << 40) - 2];
        require(mint() == 1, "from one");
        for (uint256 i = 0; i < imports.length; ++i) {
            does(issuer, abi.encodeCall(registry.mintWithId, (maker, imports[i], METADATA)));
            if (i == 2) {
                require(mint() == 2 && mint() == 3, "up to the first import");
                require(mint() == 10, "then after the highest");
            }
        }
        require(mint() == 11, "an import further up stops nothing");
        does(issuer, abi.encodeCall(registry.mintWithId, (maker, 12, METADATA)));
        require(mint() == (1 << 40) - 1, "the last shared id");
        bytes memory batch = abi.encodeCall(registry.mintBatch, (maker, new bytes32[](2)));
        uint256[] memory ids = abi.decode(does(issuer, batch), (uint256[]));
        require(ids[0] == 0xffff << 48 && ids[1] == (0xffff << 48) + 1, "then the counter's own");
        does(issuer, abi.encodeCall(registry.mintWithId, (maker, (0xffff << 48) - 1, METADATA)));
        does(issuer, abi.encodeCall(registry.mintWithId, (maker, 1 << 64, METADATA)));
        uint256[3] memory own = [uint256(0xffff << 48), (0xffff << 48) + 9, type(uint64).max];
        for (uint256 i = 0; i < own.length; ++i) {
            bytes memory call_ = abi.encodeCall(registry.mintWithId, (maker, own[i], METADATA));
            fails(issuer, call_, because(IAssetRegistry.TokenIdRefused.selector, own[i]));
        }
        require(mint() == (0xffff << 48) + 2, "and on");
    }

    // 4. An offer that was signed but not sent stayed good for ever.

    function test_theOwnerWithdrawsASignedOffer() public {
        uint256 tokenId = tokenIn(CLAIMED);
        bytes memory unsent = signedOffer(tokenId);
        bytes memory withdraw = abi.encodeWithSignature("invalidateNonce(uint256)", tokenId);
        refuses(stranger, withdraw);
        uint32 before = nonceOf(tokenId);
        does(owner, withdraw);
        require(nonceOf(tokenId) == before + 1, "the nonce rises by one");
        refuses(stranger, unsent);
        does(stranger, signedOffer(tokenId));
    }

    function test_aRelayerWithdrawsForTheOwner() public {
        uint256 tokenId = tokenIn(CLAIMED);
        offer(tokenId);
        uint32 nonce = nonceOf(tokenId);
        bytes memory notHis = withdrawal(tokenId, stranger, nonce);
        fails(recipient, notHis, abi.encodeWithSelector(IAssetRegistry.InvalidSignature.selector, owner));
        bytes memory stale = withdrawal(tokenId, owner, nonce - 1);
        fails(stranger, stale, abi.encodeWithSelector(IAssetRegistry.InvalidSignature.selector, owner));
        vm.recordLogs();
        does(stranger, withdrawal(tokenId, owner, nonce));
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == 2, "the offer is cancelled, the nonce void");
        require(logs[0].topics[0] == keccak256("TransferCancelled(uint256,uint32,address)"), "cancelled");
        require(keccak256(logs[0].data) == keccak256(abi.encode(nonce, owner)), "by the owner");
        require(logs[1].topics[0] == keccak256("NonceInvalidated(uint256,uint32,address)"), "void");
        require(logs[1].topics[1] == bytes32(tokenId), "of this token");
        require(keccak256(logs[1].data) == keccak256(abi.encode(nonce, owner)), "the owner's word");
        require(nonceOf(tokenId) == nonce + 1, "risen by one");
        fails(
            stranger,
            withdrawal(tokenId, owner, nonce),
            abi.encodeWithSelector(IAssetRegistry.InvalidSignature.selector, owner)
        );
    }

    function test_nothingIsWithdrawnAfterTheEnd() public {
        uint256 tokenId = tokenIn(RECYCLED);
        bytes memory reason = because(IAssetRegistry.WrongState.selector, tokenId, RECYCLED);
        fails(maker, abi.encodeCall(registry.invalidateNonce, (tokenId)), reason);
        fails(maker, withdrawal(tokenId, maker, 0), reason);
        fails(maker, abi.encodeCall(registry.cancelTransfer, (tokenId)), reason);
        uint256 claimed = tokenIn(CLAIMED);
        bytes memory notOwner = because(IAssetRegistry.NotOwner.selector, claimed, maker);
        fails(maker, abi.encodeCall(registry.invalidateNonce, (claimed)), notOwner);
    }

    // 5. An offer stood while the item was reported, and its owner could not take it back.

    function test_anOfferIsCancelledWhileFlagged() public {
        uint256 tokenId = tokenIn(CLAIMED);
        offer(tokenId);
        does(guardian, abi.encodeCall(registry.flag, (tokenId, 0x04, REASON)));
        does(owner, abi.encodeCall(registry.cancelTransfer, (tokenId)));
        does(guardian, abi.encodeCall(registry.resolve, (tokenId, 0x04, REASON)));
        refuses(recipient, abi.encodeCall(registry.acceptTransfer, (tokenId)));
        require(registry.ownerOf(tokenId) == owner, "not sold");
    }

    // 6. The brand ended a customer's item in the block in which it reported it.

    function test_aClaimedItemIsRecycledAfterNoticeOnly() public {
        uint256 tokenId = tokenIn(FLAGGED, CLAIMED, owner);
        bytes memory recycle = abi.encodeCall(registry.recycle, (tokenId));
        bytes memory announce = abi.encodeWithSignature("announceRecycle(uint256)", tokenId);
        refuses(warden, recycle);
        does(warden, announce);
        vm.warp(START + RECYCLE_DELAY - 1);
        refuses(warden, recycle);
        vm.warp(START + RECYCLE_DELAY);
        does(warden, recycle);
        require(stateOf(tokenId) == RECYCLED, "recycled after the notice");
    }

    function test_theNoticeSaysWhatIsMissing() public {
        uint256 tokenId = tokenIn(FLAGGED, CLAIMED, owner);
        bytes memory recycle = abi.encodeCall(registry.recycle, (tokenId));
        bytes memory announce = abi.encodeCall(registry.announceRecycle, (tokenId));
        fails(warden, recycle, because(IAssetRegistry.RecycleLocked.selector, tokenId, 0));
        fails(recycler, announce, lacks(recycler, GUARDIAN));
        fails(guardian, announce, lacks(guardian, RECYCLER));
        vm.recordLogs();
        does(warden, announce);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == 1 && logs[0].topics[1] == bytes32(tokenId), "one event");
        require(logs[0].topics[0] == keccak256("RecycleAnnounced(uint256,uint64,address)"), "the announcement");
        require(keccak256(logs[0].data) == keccak256(abi.encode(START + RECYCLE_DELAY, warden)), "until when, by whom");
        require(registry.recyclableFrom(tokenId) == START + RECYCLE_DELAY, "readable");
        vm.warp(START + 1);
        bytes memory again = because(IAssetRegistry.RecycleLocked.selector, tokenId, START + RECYCLE_DELAY);
        fails(warden, announce, again);
        fails(warden, recycle, because(IAssetRegistry.RecycleLocked.selector, tokenId, START + RECYCLE_DELAY));
    }

    function test_theNoticeEndsWithTheReports() public {
        uint256 tokenId = tokenIn(FLAGGED, CLAIMED, owner);
        bytes memory announce = abi.encodeCall(registry.announceRecycle, (tokenId));
        does(warden, announce);
        does(guardian, abi.encodeCall(registry.flag, (tokenId, 0x10, REASON)));
        does(guardian, abi.encodeCall(registry.resolve, (tokenId, 0x04, REASON)));
        require(registry.recyclableFrom(tokenId) != 0, "one report of two is left");
        does(guardian, abi.encodeCall(registry.resolve, (tokenId, 0x10, REASON)));
        require(registry.recyclableFrom(tokenId) == 0, "the notice is void");
        fails(warden, announce, because(IAssetRegistry.WrongState.selector, tokenId, CLAIMED));
        vm.warp(START + RECYCLE_DELAY);
        does(guardian, abi.encodeCall(registry.flag, (tokenId, 0x04, REASON)));
        bytes memory recycle = abi.encodeCall(registry.recycle, (tokenId));
        fails(warden, recycle, because(IAssetRegistry.RecycleLocked.selector, tokenId, 0));
    }

    function test_stockNeedsNoNotice() public {
        uint256 tokenId = tokenIn(FLAGGED, ACTIVATED, maker);
        bytes memory announce = abi.encodeCall(registry.announceRecycle, (tokenId));
        fails(warden, announce, because(IAssetRegistry.WrongState.selector, tokenId, ACTIVATED));
        does(warden, abi.encodeCall(registry.recycle, (tokenId)));
        require(stateOf(tokenId) == RECYCLED, "at once");
    }

    // 7. A thief of the attester's key could claim the whole stock in minutes.

    function test_anAttesterIsBoundedADay() public {
        does(admin, abi.encodeWithSignature("setAttesterLimit(address,uint32)", attester, uint32(2)));
        uint256[3] memory stock = [tokenIn(ACTIVATED), tokenIn(ACTIVATED), tokenIn(ACTIVATED)];
        claimFor(stock[0], thief);
        claimFor(stock[1], thief);
        refuses(stranger, claimCall(stock[2], thief));
        refuses(attester, abi.encodeCall(registry.flag, (stock[0], 0x20, REASON)));
        // The day of START ends 57,600 s after it.
        vm.warp(START + 57_599);
        bytes memory reason = abi.encodeWithSelector(IAssetRegistry.AttesterLimitReached.selector, attester, 2);
        fails(attester, abi.encodeCall(registry.flag, (stock[0], 0x20, REASON)), reason);
        vm.warp(START + 57_600);
        does(attester, abi.encodeCall(registry.flag, (stock[0], 0x20, REASON)));
        vm.warp(START + 1 days);
        claimFor(stock[2], thief);
    }

    function test_theLimitOfAnAttester() public {
        expectAllowance(10_000, 0);
        uint256 tokenId = tokenIn(ACTIVATED);
        does(attester, abi.encodeCall(registry.flag, (tokenId, 0x20, REASON)));
        does(attester, abi.encodeCall(registry.resolve, (tokenId, 0x20, REASON)));
        does(guardian, abi.encodeCall(registry.flag, (tokenId, 0x04, REASON)));
        expectAllowance(10_000, 2);
        bytes memory set = abi.encodeCall(registry.setAttesterLimit, (attester, 2));
        fails(issuer, set, lacks(issuer, ADMIN));
        vm.recordLogs();
        does(admin, set);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs.length == 1 && logs[0].topics[0] == keccak256("AttesterLimitSet(address,uint32)"), "announced");
        require(logs[0].topics[1] == bytes32(uint256(uint160(attester))), "of this attester");
        require(keccak256(logs[0].data) == keccak256(abi.encode(2)), "the new limit");
        expectAllowance(2, 2);
        bytes memory reason = abi.encodeWithSelector(IAssetRegistry.AttesterLimitReached.selector, attester, 2);
        fails(attester, abi.encodeCall(registry.flag, (tokenId, 0x20, REASON)), reason);
        fails(stranger, claimCall(tokenIn(ACTIVATED), thief), reason);
        vm.warp(START + 1 days);
        expectAllowance(2, 0);
        does(admin, abi.encodeCall(registry.setAttesterLimit, (attester, 0)));
        expectAllowance(10_000, 0);
    }

    function test_rolesHaveTheirNames() public view {
        require(registry.ISSUER_ROLE() == keccak256("ISSUER_ROLE"), "issuer");
        require(registry.BINDER_ROLE() == keccak256("BINDER_ROLE"), "binder");
        require(registry.QA_ROLE() == keccak256("QA_ROLE"), "qa");
        require(registry.ATTESTER_ROLE() == keccak256("ATTESTER_ROLE"), "attester");
        require(registry.GUARDIAN_ROLE() == keccak256("GUARDIAN_ROLE"), "guardian");
        require(registry.RECYCLER_ROLE() == keccak256("RECYCLER_ROLE"), "recycler");
    }

    function test_saysItsVersion() public view {
        require(registry.version() == 2, "2");
        require(registry.supportsInterface(0x31498786), "IAccessControlDefaultAdminRules");
        (, string memory name, string memory version,,,,) = registry.eip712Domain();
        require(keccak256(bytes(name)) == keccak256("AssetRegistry"), "the signing domain stays");
        require(keccak256(bytes(version)) == keccak256("1"), "the signing domain stays");
    }

    // Helpers

    function expectAllowance(uint32 perDay, uint32 used) private view {
        (uint32 foundPerDay, uint32 foundUsed) = registry.attesterAllowance(attester);
        require(foundPerDay == perDay && foundUsed == used, "allowance");
    }

    function withdrawal(uint256 tokenId, address signer, uint32 nonce) private view returns (bytes memory) {
        bytes memory signature = signed(signer, invalidateHash(tokenId, owner, nonce));
        return abi.encodeCall(registry.invalidateNonceBySig, (tokenId, signature));
    }

    function refuses(address caller, bytes memory call_) private {
        (bool success,) = attempt(caller, call_);
        require(!success, "the call should have been refused");
    }

    function signedOffer(uint256 tokenId) private view returns (bytes memory) {
        bytes32 hash = initiateHash(tokenId, owner, thief, type(uint64).max, nonceOf(tokenId), REASON);
        return abi.encodeCall(
            registry.initiateTransferBySig, (tokenId, thief, type(uint64).max, REASON, signed(owner, hash))
        );
    }
}
