// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAssetRegistry} from "../src/IAssetRegistry.sol";
import {CLAIMED, FLAGGED, RECYCLED} from "../src/Lifecycle.sol";
import {TestWallet} from "../src/doubles/TestWallet.sol";
import {World} from "./World.sol";

/// Two steps: nothing moves before the recipient accepts (spec §3). Signatures serve once, and one holding only.
contract TransfersTest is World {
    uint64 private constant EXPIRY = uint64(START + 3 days);
    uint256 private tokenId;

    function setUp() public override {
        super.setUp();
        tokenId = tokenIn(CLAIMED);
    }

    function testFuzz_nothingMovesBeforeAcceptance(uint8 pick, uint32 wait) public {
        uint256 id = tokenIn(1 + pick % 4);
        uint256 word = wordOf(id);
        address from = registry.ownerOf(id);
        offer(id);
        require(wordOf(id) == word, "the offer changes no record");
        vm.warp(START + wait % 3 days);
        does(recipient, abi.encodeCall(registry.acceptTransfer, (id)));
        require(registry.ownerOf(id) == recipient && registry.balanceOf(recipient) == 1, "moved");
        require(registry.balanceOf(from) == (from == owner ? 1 : 0), "the former owner's other item stays");
        require(stateOf(id) == 1 + pick % 4, "the state stays");
        (address to, uint64 expiry,) = registry.pendingTransfer(id);
        require(to == address(0) && expiry == 0, "nothing is pending any more");
    }

    function test_bySignatures() public {
        does(stranger, initiateCall(owner, 1));
        (address to, uint64 expiry, uint32 nonce) = registry.pendingTransfer(tokenId);
        require(to == recipient && expiry == EXPIRY && nonce == 2, "offered; the nonce rose");
        does(stranger, acceptCall(recipient, owner, 2));
        require(registry.ownerOf(tokenId) == recipient, "moved");
    }

    function test_signaturesServeOnce() public {
        bytes memory initiate = initiateCall(owner, 1);
        bytes memory accept = acceptCall(recipient, owner, 2);
        does(stranger, initiate);
        does(stranger, cancelCall(owner, owner, 2));
        fails(stranger, initiate, invalid(owner));
        fails(stranger, accept, because(IAssetRegistry.NoPendingTransfer.selector, tokenId));
        offer(tokenId);
        fails(stranger, accept, invalid(recipient));
        fails(stranger, cancelCall(owner, owner, 2), invalid(owner));
    }

    /// A signature of an earlier ownership is void, also when the item has come back to its signer.
    function test_signaturesOfAnEarlierHoldingAreDead() public {
        bytes memory initiate = initiateCall(owner, 2);
        bytes memory recycle = recycleCall(owner, 2);
        offer(tokenId);
        does(recipient, abi.encodeCall(registry.acceptTransfer, (tokenId)));
        fails(stranger, initiate, invalid(recipient));
        fails(stranger, recycle, invalid(recipient));
        does(recipient, abi.encodeCall(registry.initiateTransfer, (tokenId, owner, EXPIRY, REASON)));
        does(owner, abi.encodeCall(registry.acceptTransfer, (tokenId)));
        fails(stranger, initiate, invalid(owner));
        fails(stranger, recycle, invalid(owner));
    }

    function testFuzz_everyFieldOfAnOfferIsSigned(address to, uint64 expiry, bytes32 message, uint32 nonce, uint256 id)
        public
    {
        vm.assume(to != recipient && expiry != EXPIRY && message != REASON && nonce != 1 && id != tokenId);
        bytes32[6] memory hashes = [
            initiateHash(tokenId, owner, to, EXPIRY, 1, REASON),
            initiateHash(tokenId, owner, recipient, expiry, 1, REASON),
            initiateHash(tokenId, owner, recipient, EXPIRY, 1, message),
            initiateHash(tokenId, owner, recipient, EXPIRY, nonce, REASON),
            initiateHash(id, owner, recipient, EXPIRY, 1, REASON),
            initiateHash(tokenId, recipient, recipient, EXPIRY, 1, REASON)
        ];
        for (uint256 i = 0; i < hashes.length; ++i) {
            bytes memory signature = signed(owner, hashes[i]);
            fails(
                stranger,
                abi.encodeCall(registry.initiateTransferBySig, (tokenId, recipient, EXPIRY, REASON, signature)),
                invalid(owner)
            );
        }
    }

    function test_onlyThePartiesSign() public {
        fails(recipient, initiateCall(stranger, 1), invalid(owner));
        offer(tokenId);
        fails(owner, acceptCall(stranger, owner, 2), invalid(recipient));
        fails(owner, acceptCall(owner, owner, 2), invalid(recipient));
        fails(
            owner,
            cancelCall(stranger, owner, 2),
            because(IAssetRegistry.NotTransferParty.selector, tokenId, stranger)
        );
        fails(stranger, recycleCall(stranger, 2), invalid(owner));
    }

    function test_recipientDeclines() public {
        offer(tokenId);
        does(stranger, cancelCall(recipient, owner, 2));
        (address to, uint64 expiry, uint32 nonce) = registry.pendingTransfer(tokenId);
        require(to == address(0) && expiry == 0 && nonce == 2, "no offer; the nonce stays behind");
    }

    function testFuzz_expiry(uint64 expiry, uint32 wait) public {
        bytes memory call_ = abi.encodeCall(registry.initiateTransfer, (tokenId, recipient, expiry, REASON));
        if (expiry <= START) return fails(owner, call_, because(IAssetRegistry.ExpiryPassed.selector, expiry));
        does(owner, call_);
        vm.warp(START + wait);
        bytes memory accept = abi.encodeCall(registry.acceptTransfer, (tokenId));
        bytes memory again = abi.encodeCall(registry.initiateTransfer, (tokenId, stranger, type(uint64).max, REASON));
        if (block.timestamp <= expiry) {
            fails(owner, again, because(IAssetRegistry.TransferPending.selector, tokenId));
            does(recipient, accept);
        } else {
            fails(recipient, accept, because(IAssetRegistry.TransferExpired.selector, tokenId, expiry));
            does(owner, again);
        }
    }

    function test_anOfferEndsAfterItsLastSecond() public {
        bytes memory toOne = abi.encodeCall(registry.initiateTransfer, (tokenId, address(1), EXPIRY, REASON));
        does(owner, toOne);
        fails(owner, toOne, because(IAssetRegistry.TransferPending.selector, tokenId));
        does(owner, abi.encodeCall(registry.cancelTransfer, (tokenId)));
        offer(tokenId);
        vm.warp(EXPIRY + 1);
        bytes memory expired = because(IAssetRegistry.TransferExpired.selector, tokenId, EXPIRY);
        fails(recipient, abi.encodeCall(registry.acceptTransfer, (tokenId)), expired);
        does(owner, abi.encodeCall(registry.initiateTransfer, (tokenId, stranger, EXPIRY + 10, REASON)));
    }

    function test_lastSecondCounts() public {
        offer(tokenId);
        vm.warp(EXPIRY);
        fails(
            owner,
            abi.encodeCall(registry.initiateTransfer, (tokenId, stranger, EXPIRY + 1, REASON)),
            because(IAssetRegistry.TransferPending.selector, tokenId)
        );
        does(recipient, abi.encodeCall(registry.acceptTransfer, (tokenId)));
        fails(
            recipient,
            abi.encodeCall(registry.initiateTransfer, (tokenId, owner, EXPIRY, REASON)),
            because(IAssetRegistry.ExpiryPassed.selector, EXPIRY)
        );
    }

    function test_sayWhatIsWrong() public {
        bytes memory initiate = abi.encodeCall(registry.initiateTransfer, (tokenId, recipient, EXPIRY, REASON));
        fails(stranger, initiate, because(IAssetRegistry.NotOwner.selector, tokenId, stranger));
        fails(
            owner,
            abi.encodeCall(registry.initiateTransfer, (tokenId, owner, EXPIRY, REASON)),
            because(IAssetRegistry.TransferToOwner.selector, tokenId)
        );
        fails(
            owner,
            abi.encodeCall(registry.initiateTransfer, (tokenId, address(0), EXPIRY, REASON)),
            abi.encodeWithSelector(IAssetRegistry.ZeroAddress.selector)
        );
        fails(
            owner,
            abi.encodeCall(registry.cancelTransfer, (tokenId)),
            because(IAssetRegistry.NoPendingTransfer.selector, tokenId)
        );
        offer(tokenId);
        fails(
            stranger,
            abi.encodeCall(registry.acceptTransfer, (tokenId)),
            because(IAssetRegistry.NotRecipient.selector, tokenId, stranger)
        );
    }

    /// A report stops an offer; once it is resolved the same offer may be accepted.
    function test_reportsBlockAnOffer() public {
        offer(tokenId);
        does(guardian, abi.encodeCall(registry.flag, (tokenId, 0x04, REASON)));
        bytes memory reason = because(IAssetRegistry.WrongState.selector, tokenId, FLAGGED);
        fails(recipient, abi.encodeCall(registry.acceptTransfer, (tokenId)), reason);
        fails(stranger, acceptCall(recipient, owner, 2), reason);
        does(guardian, abi.encodeCall(registry.resolve, (tokenId, 0x04, REASON)));
        does(recipient, abi.encodeCall(registry.acceptTransfer, (tokenId)));
    }

    function test_smartAccountsSellAndBuy() public {
        TestWallet seller = new TestWallet(owner);
        TestWallet buyer = new TestWallet(recipient);
        uint256 id = tokenIn(3);
        claimByWallet(id, seller);
        bytes32 offered = initiateHash(id, address(seller), address(buyer), EXPIRY, 1, REASON);
        bytes32 accepted = acceptHash(id, address(seller), address(buyer), EXPIRY, 2);
        bytes memory wrong = signed(stranger, offered);
        fails(
            stranger,
            abi.encodeCall(registry.initiateTransferBySig, (id, address(buyer), EXPIRY, REASON, wrong)),
            invalid(address(seller))
        );
        bytes memory right = signed(owner, offered);
        does(stranger, abi.encodeCall(registry.initiateTransferBySig, (id, address(buyer), EXPIRY, REASON, right)));
        fails(
            stranger,
            abi.encodeCall(registry.acceptTransferBySig, (id, signed(owner, accepted))),
            invalid(address(buyer))
        );
        does(stranger, abi.encodeCall(registry.acceptTransferBySig, (id, signed(recipient, accepted))));
        require(registry.ownerOf(id) == address(buyer), "bought");
        bytes32 ended = recycleHash(id, address(buyer), 2, START + 60);
        does(stranger, abi.encodeCall(registry.recycleBySig, (id, START + 60, signed(recipient, ended))));
        require(stateOf(id) == RECYCLED, "recycled");
    }

    function test_recycleBySignature() public {
        bytes memory call_ = recycleCall(owner, 1);
        vm.warp(START + 61);
        fails(stranger, call_, because(IAssetRegistry.SignatureExpired.selector, START + 60));
        vm.warp(START + 60);
        does(stranger, call_);
        require(stateOf(tokenId) == RECYCLED && registry.ownerOf(tokenId) == owner, "recycled; the owner stays");
        fails(stranger, call_, because(IAssetRegistry.WrongState.selector, tokenId, RECYCLED));
    }

    function claimByWallet(uint256 id, TestWallet wallet) private {
        uint256 deadline = START + 60;
        bytes32 attested = claimHash(id, address(wallet), tagOf(id), 7, 0, deadline);
        bytes memory call_ = claimCall(id, address(wallet), deadline, signed(attester, attested), "");
        vm.prank(owner);
        wallet.execute(address(registry), call_);
    }

    function initiateCall(address signer, uint32 nonce) private view returns (bytes memory) {
        bytes memory signature = signed(signer, initiateHash(tokenId, owner, recipient, EXPIRY, nonce, REASON));
        return abi.encodeCall(registry.initiateTransferBySig, (tokenId, recipient, EXPIRY, REASON, signature));
    }

    function acceptCall(address signer, address from, uint32 nonce) private view returns (bytes memory) {
        bytes memory signature = signed(signer, acceptHash(tokenId, from, recipient, EXPIRY, nonce));
        return abi.encodeCall(registry.acceptTransferBySig, (tokenId, signature));
    }

    function cancelCall(address signer, address from, uint32 nonce) private view returns (bytes memory) {
        bytes memory signature = signed(signer, cancelHash(tokenId, from, nonce));
        return abi.encodeCall(registry.cancelTransferBySig, (tokenId, signer, signature));
    }

    function recycleCall(address signer, uint32 nonce) private view returns (bytes memory) {
        bytes memory signature = signed(signer, recycleHash(tokenId, signer, nonce, START + 60));
        return abi.encodeCall(registry.recycleBySig, (tokenId, START + 60, signature));
    }

    function invalid(address signer) private pure returns (bytes memory) {
        return abi.encodeWithSelector(IAssetRegistry.InvalidSignature.selector, signer);
    }
}
