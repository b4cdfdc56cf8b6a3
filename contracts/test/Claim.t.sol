// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAssetRegistry} from "../src/IAssetRegistry.sol";
import {ACTIVATED, CLAIMED, ATTESTER} from "../src/Lifecycle.sol";
import {TestWallet} from "../src/doubles/TestWallet.sol";
import {World} from "./World.sol";

/// A claim needs two yeses: the attester's, who saw the tap, and the claimant's.
contract ClaimTest is World {
    uint256 private constant DEADLINE = START + 60;
    uint256 private tokenId;

    function setUp() public override {
        super.setUp();
        tokenId = tokenIn(ACTIVATED);
    }

    function test_relayedWithBothSignatures() public {
        does(stranger, claimCall(tokenId, owner));
        require(registry.ownerOf(tokenId) == owner && stateOf(tokenId) == CLAIMED, "claimed");
        require(registry.balanceOf(owner) == 1 && registry.balanceOf(maker) == 0, "balances");
        require(nonceOf(tokenId) == 1, "the nonce rises");
    }

    function test_senderNeedsNoConsent() public {
        does(owner, claimCall(tokenId, owner, DEADLINE, attested(owner), ""));
        require(registry.ownerOf(tokenId) == owner, "claimed");
    }

    function test_senderIsNotEnough() public {
        fails(owner, claimCall(tokenId, owner, DEADLINE, "", ""), invalid(attester));
        bytes memory own = signed(owner, claimHash(tokenId, owner, tagOf(tokenId), 7, 0, DEADLINE));
        fails(owner, claimCall(tokenId, owner, DEADLINE, own, ""), invalid(attester));
    }

    function test_nobodyIsGivenAnAssetUnasked() public {
        fails(attester, claimCall(tokenId, owner, DEADLINE, attested(owner), ""), invalid(owner));
        bytes memory another = signed(stranger, consentHash(tokenId, owner, 0, DEADLINE));
        fails(attester, claimCall(tokenId, owner, DEADLINE, attested(owner), another), invalid(owner));
        fails(
            attester,
            claimCall(tokenId, address(0), DEADLINE, attested(address(0)), ""),
            abi.encodeWithSelector(IAssetRegistry.ZeroAddress.selector)
        );
    }

    function test_attesterMustHoldTheRole() public {
        bytes memory call_ = claimCall(tokenId, owner);
        does(admin, abi.encodeCall(registry.revokeRole, (ATTESTER, attester)));
        fails(stranger, call_, lacks(attester, ATTESTER));
        does(admin, abi.encodeCall(registry.grantRole, (ATTESTER, attester)));
        does(stranger, call_);
    }

    /// Every field is signed: a change of any of them is refused.
    function testFuzz_everyFieldIsSigned(uint8 field, uint256 change) public {
        vm.assume(change != 0);
        field = field % 6;
        uint256[6] memory f = [tokenId, uint160(owner), uint256(tagOf(tokenId)), 7, 0, DEADLINE];
        uint256[6] memory width = [uint256(256), 160, 256, 32, 32, 256];
        f[field] ^= change % (width[field] == 256 ? type(uint256).max : 1 << width[field]);
        vm.assume(f[field] != [tokenId, uint160(owner), uint256(tagOf(tokenId)), 7, 0, DEADLINE][field]);
        bytes32 hash = claimHash(
            f[0], address(uint160(f[1])), bytes32(f[2]), uint32(f[3]), uint32(f[4]), f[5]
        );
        fails(owner, claimCall(tokenId, owner, DEADLINE, signed(attester, hash), ""), invalid(attester));
    }

    function testFuzz_consentIsExact(uint256 otherId, address other, uint32 nonce, uint256 deadline) public {
        vm.assume(otherId != tokenId && other != owner && nonce != 0 && deadline != DEADLINE);
        bytes32[4] memory hashes = [
            consentHash(otherId, owner, 0, DEADLINE),
            consentHash(tokenId, other, 0, DEADLINE),
            consentHash(tokenId, owner, nonce, DEADLINE),
            consentHash(tokenId, owner, 0, deadline)
        ];
        for (uint256 i = 0; i < 4; ++i) {
            bytes memory call_ = claimCall(tokenId, owner, DEADLINE, attested(owner), signed(owner, hashes[i]));
            fails(stranger, call_, invalid(owner));
        }
    }

    function testFuzz_deadline(uint64 late) public {
        bytes memory call_ = claimCall(tokenId, owner);
        vm.warp(DEADLINE + 1 + uint256(late));
        fails(stranger, call_, because(IAssetRegistry.SignatureExpired.selector, DEADLINE));
        vm.warp(DEADLINE);
        does(stranger, call_);
    }

    /// After a return to stock the old signatures do not claim again, although the state would allow it.
    function test_replayAfterRestock() public {
        bytes memory call_ = claimCall(tokenId, issuer);
        does(stranger, call_);
        does(issuer, abi.encodeCall(registry.restock, (tokenId)));
        require(stateOf(tokenId) == ACTIVATED && nonceOf(tokenId) == 2, "back in stock");
        fails(stranger, call_, invalid(attester));
        claimFor(tokenId, owner);
        require(registry.ownerOf(tokenId) == owner, "claimed anew");
    }

    function test_offerMakesAnOlderClaimStale() public {
        bytes memory call_ = claimCall(tokenId, owner);
        offer(tokenId);
        fails(stranger, call_, invalid(attester));
        does(stranger, claimCall(tokenId, owner));
        fails(
            recipient,
            abi.encodeCall(registry.acceptTransfer, (tokenId)),
            because(IAssetRegistry.NoPendingTransfer.selector, tokenId)
        );
    }

    function test_signaturesHoldOnOneChain() public {
        bytes memory call_ = claimCall(tokenId, owner);
        vm.chainId(block.chainid + 1);
        fails(stranger, call_, invalid(attester));
        does(stranger, claimCall(tokenId, owner));
    }

    function test_signaturesHoldForOneContract() public {
        bytes memory call_ = claimCall(tokenId, owner);
        super.setUp();
        require(tokenIn(ACTIVATED) == tokenId, "the same id in another registry");
        fails(stranger, call_, invalid(attester));
    }

    function test_smartAccountsClaimAndAttest() public {
        TestWallet claimant = new TestWallet(owner);
        TestWallet machine = new TestWallet(attester);
        does(admin, abi.encodeCall(registry.grantRole, (ATTESTER, address(machine))));
        bytes memory attesterSig = attested(address(claimant));
        bytes32 consent = consentHash(tokenId, address(claimant), 0, DEADLINE);
        bytes memory good = abi.encodeCall(
            registry.claim,
            (tokenId, address(claimant), 7, DEADLINE, address(machine), attesterSig, signed(owner, consent))
        );
        bytes memory bad = abi.encodeCall(
            registry.claim,
            (tokenId, address(claimant), 7, DEADLINE, address(machine), attesterSig, signed(stranger, consent))
        );
        fails(stranger, bad, invalid(address(claimant)));
        does(stranger, good);
        require(registry.ownerOf(tokenId) == address(claimant), "the account owns it");
    }

    /// An account with code (EIP-7702 too) speaks by ERC-1271 only: its key's own signature no longer counts.
    function test_accountsWithCodeAreAskedByErc1271Only() public {
        bytes memory call_ = claimCall(tokenId, owner);
        vm.etch(owner, address(new TestWallet(stranger)).code);
        fails(stranger, call_, invalid(owner));
        vm.etch(owner, address(new TestWallet(owner)).code);
        does(stranger, call_);
    }

    /// The mirrored signature (n - s) is a second signature of the same words; it does not count.
    function test_highSIsRefused() public {
        (bytes32 r, bytes32 s, uint8 v) = split(attested(owner));
        uint256 order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;
        bytes memory mirrored = abi.encodePacked(r, order - uint256(s), v == 27 ? uint8(28) : uint8(27));
        fails(owner, claimCall(tokenId, owner, DEADLINE, mirrored, ""), invalid(attester));
    }

    function attested(address claimant) private view returns (bytes memory) {
        return signed(attester, claimHash(tokenId, claimant, tagOf(tokenId), 7, 0, DEADLINE));
    }

    function invalid(address signer) private pure returns (bytes memory) {
        return abi.encodeWithSelector(IAssetRegistry.InvalidSignature.selector, signer);
    }

    function split(bytes memory signature) private pure returns (bytes32 r, bytes32 s, uint8 v) {
        assembly ("memory-safe") {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
            v := byte(0, mload(add(signature, 96)))
        }
    }
}
